#include "cmd/run/roll.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/run/publish.h"
#include "cmd/run/recall.h"
#include "link/spool_file.h"

/* Who may speak for a learner: the owner of its folder, and who runs us. */
static int may_speak(const struct pass *p, const char *name, uid_t uid)
{
	char *path = dl_sprintf("new/%s", name);
	struct stat st;
	int fd, ok = uid == geteuid();

	if (!ok && !dl_spool_open_folder(p->spool, path, &fd, NULL)) {
		ok = !fstat(fd, &st) && st.st_uid == uid;
		close(fd);
	}
	free(path);
	return ok;
}

static int read_text(struct pass *p, const char *path, struct stat *st,
	struct dl_buf *text, struct dl_err *e)
{
	int fd, code = dl_spool_open_file(p->spool, path, &fd, st, e);

	if (code)
		return code;
	close(fd);
	return dl_spool_read(p->spool, path, DL_SPOOL_TEXT_MAX, text, e);
}

static int fits(const struct pass *p, const struct dl_spool_learner *v,
	struct dl_err *e)
{
	if (v->fragments != p->layout->fragments)
		return dl_fail(e, DL_DATA, "%u fragments, but the run has %u",
			v->fragments, p->layout->fragments);
	if (*v->layout && strcmp(v->layout, p->layout->hash) != 0)
		return dl_fail(e, DL_DATA, "has another layout");
	return 0;
}

static int read_learner(struct pass *p, const char *name,
	struct roll_learner *l, struct dl_err *e)
{
	char *path = dl_sprintf("learner/%s", name), mark[SEEN_MARK];
	struct dl_buf text = DL_BUF_INIT;
	struct stat st;
	int unread = read_text(p, path, &st, &text, e), code = unread;

	*l = (struct roll_learner){0};
	if (!code && !may_speak(p, name, st.st_uid))
		code = dl_fail(e, DL_DATA, "is not its learner's");
	if (!code)
		code = dl_spool_learner_parse(&l->says, text.data, text.len, e);
	if (!code)
		code = fits(p, &l->says, e);
	if (!code) {
		strcpy(l->name, name);
		snprintf(mark, sizeof mark, "%lld.%09ld",
			(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
		l->silent = p->now - seen_since(&p->seen, path, mark, p->now) >=
			    p->options->sync.dead_ns;
	} else {
		if (!unread) /* else e names it already */
			dl_at(e, "%s", path);
		dl_spool_learner_release(&l->says);
	}
	dl_buf_free(&text);
	free(path);
	return code;
}

int roll_read(struct roll *r, struct pass *p, struct dl_err *e)
{
	struct dl_spool_names names;
	struct dl_err why;
	int code = dl_spool_list(p->spool, "learner", &names, e);

	*r = (struct roll){0};
	if (code)
		return code == DL_NOINPUT ? 0 : code;
	r->learner = dl_alloc_array(names.n, sizeof *r->learner);
	for (size_t i = 0; i < names.n; i++) {
		const char *name = names.name[i];

		if (!dl_name_ok(name, strlen(name))) {
			p->report.passed_over++;
		} else if (read_learner(
				   p, name, r->learner + r->learners, &why)) {
			p->report.passed_over++;
			cmd_note("%s", why.text);
		} else {
			r->learners++;
		}
	}
	dl_spool_names_release(&names);
	return 0;
}

void roll_release(struct roll *r)
{
	for (size_t i = 0; i < r->learners; i++)
		dl_spool_learner_release(&r->learner[i].says);
	free(r->learner);
	*r = (struct roll){0};
}

static int by_name(const void *name, const void *l)
{
	return strcmp(name, ((const struct roll_learner *)l)->name);
}

const struct roll_learner *roll_find(const struct roll *r, const char *name)
{
	return r->learners ? bsearch(name, r->learner, r->learners,
				     sizeof *r->learner, by_name)
			   : NULL;
}

static struct dl_sync_event event_of(
	const struct roll_learner *l, enum dl_sync_event_kind kind)
{
	return (struct dl_sync_event){.kind = kind,
		.learner = l->name,
		.instance = l->says.instance,
		.clock = l->says.clock,
		.steps = l->says.steps,
		.tokens = l->says.tokens,
		.loss = l->says.loss,
		.versions = l->says.version};
}

static void join(struct pass *p, const struct roll_learner *l)
{
	struct dl_sync_event ev = event_of(l, DL_EV_JOIN);

	/* One that was never answered has begun at a clock that was shown, and
	 * made all its steps in this run. */
	if (!recall_knows(p, l->name, l->says.instance))
		ev.steps = ev.tokens = 0;
	pass_event(p, &ev);
}

/* What the core knows of it. */
static int find_info(const struct pass *p, const char *name,
	struct dl_sync_learner_info *info)
{
	for (size_t i = 0; dl_sync_learner(p->core, i, info); i++)
		if (!strcmp(info->name, name))
			return 1;
	return 0;
}

void roll_join_gone(struct pass *p, const char *name, uint64_t instance,
	uint64_t clock, uint64_t steps, uint64_t tokens)
{
	struct dl_version *none =
		dl_alloc_array(p->layout->fragments, sizeof *none);
	struct dl_sync_learner_info info;
	struct dl_sync_event ev = {.kind = DL_EV_JOIN,
		.learner = name,
		.instance = instance,
		.clock = clock,
		.steps = steps,
		.tokens = tokens,
		.versions = none,
		.loss = NAN};

	if (find_info(p, name, &info) && info.instance == instance) {
		ev.steps += info.steps;
		ev.tokens += info.tokens;
	}
	pass_event(p, &ev);
	free(none);
}

static void tell_step(struct pass *p, const struct roll_learner *l)
{
	struct dl_sync_event ev = event_of(l, DL_EV_STEP);
	struct dl_sync_learner_info info;

	if (find_info(p, l->name, &info) &&
		(info.clock < ev.clock || info.steps != ev.steps ||
			info.tokens != ev.tokens))
		pass_event(p, &ev);
}

static void tell_applied(struct pass *p, const struct roll_learner *l)
{
	const struct book_learner *known = book_find(&p->book, l->name);

	for (uint32_t f = 0; f < p->layout->fragments; f++) {
		struct dl_sync_event ev = event_of(l, DL_EV_APPLIED);

		ev.fragment = f;
		ev.version = l->says.version[f];
		ev.elements = p->layout->fragment[f].elements;
		ev.bytes = publish_bytes(p, f, known->version[f], ev.version);
		if (dl_version_cmp(ev.version, known->version[f]))
			pass_event(p, &ev);
	}
}

static void leave(struct pass *p, const char *name, uint64_t instance)
{
	struct dl_sync_event ev = {.kind = DL_EV_LEAVE,
		.learner = name,
		.instance = instance,
		.loss = NAN};

	pass_event(p, &ev);
	cmd_debug("%s has left", name);
}

void roll_tell_one(struct pass *p, const struct roll_learner *l)
{
	const struct book_learner *known = book_find(&p->book, l->name);
	int here = known && known->here && known->instance == l->says.instance;

	if (!here && (l->silent || l->says.state == DL_SPOOL_LEAVING) &&
		known && known->instance == l->says.instance)
		return;
	if (!here) {
		join(p, l);
		cmd_debug("%s is here", l->name);
	}
	/* Nobody knows at which of its steps: those since the last pass count
	 * as made with it. */
	tell_applied(p, l);
	tell_step(p, l);
}

void roll_tell(const struct roll *r, struct pass *p)
{
	for (size_t i = 0; i < r->learners && !pass_stopped(p); i++)
		roll_tell_one(p, r->learner + i);
}

void roll_tell_last(const struct roll *r, struct pass *p,
	int (*waits)(void *ctx, const char *name), void *ctx)
{
	for (size_t i = 0; i < p->book.learners && !pass_stopped(p); i++) {
		struct book_learner *known = p->book.learner[i];
		const struct roll_learner *l = roll_find(r, known->name);
		struct dl_sync_event ev;

		if (!known->here || (l && !l->silent && waits(ctx, l->name)))
			continue;
		if (!l || l->silent || l->says.state == DL_SPOOL_LEAVING) {
			leave(p, known->name, known->instance);
		} else if (l->says.state == DL_SPOOL_DRAINED &&
			   !known->drained) {
			ev = event_of(l, DL_EV_DRAINED);
			pass_event(p, &ev);
		}
	}
}
