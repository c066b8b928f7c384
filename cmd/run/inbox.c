/* Pushes that lie in the spool. */
#include "cmd/run/inbox.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/run/give.h"
#include "link/spool_file.h"

enum { HEADER_MAX = 16 << 20 };

static void add(struct inbox *in, const char *learner, uid_t owner,
	const char *file, const struct dl_spool_push *name)
{
	struct inbox_push *push;

	if (!(in->pushes & (in->pushes - 1)))
		in->push = dl_resize(in->push, in->pushes ? 2 * in->pushes : 1,
			sizeof *in->push);
	push = &in->push[in->pushes++];
	*push = (struct inbox_push){
		.path = dl_sprintf("new/%s/%s", learner, file),
		.name = *name,
		.owner = owner};
	strcpy(push->learner, learner);
}

static void list_learner(struct inbox *in, struct pass *p, const char *learner)
{
	char *path = dl_sprintf("new/%s", learner);
	struct dl_spool_names names = {0};
	struct dl_spool_push name;
	struct stat st;
	int fd = -1;

	if (!dl_name_ok(learner, strlen(learner)) ||
		dl_spool_open_folder(p->spool, path, &fd, NULL) ||
		fstat(fd, &st) || dl_spool_list(p->spool, path, &names, NULL)) {
		p->report.passed_over++;
	} else {
		for (size_t i = 0; i < names.n; i++)
			if (!dl_spool_push_parse(&name, names.name[i]) &&
				name.fragment < p->layout->fragments)
				add(in, learner, st.st_uid, names.name[i],
					&name);
			else
				p->report.passed_over++;
		dl_spool_names_release(&names);
	}
	if (fd >= 0)
		close(fd);
	free(path);
}

/* The core takes a learner's pushes of a fragment in the order of seq. */
static int by_seq(const void *a, const void *b)
{
	const struct inbox_push *x = a, *y = b;
	int c = strcmp(x->learner, y->learner);

	if (!c)
		c = (x->name.fragment > y->name.fragment) -
		    (x->name.fragment < y->name.fragment);
	if (!c)
		c = (x->name.seq > y->name.seq) - (x->name.seq < y->name.seq);
	return c ? c : strcmp(x->path, y->path);
}

int inbox_list(struct inbox *in, struct pass *p, struct dl_err *e)
{
	struct dl_spool_names names;
	int code = dl_spool_list(p->spool, "new", &names, e);

	*in = (struct inbox){0};
	if (code)
		return code == DL_NOINPUT ? 0 : code;
	for (size_t i = 0; i < names.n; i++)
		list_learner(in, p, names.name[i]);
	dl_spool_names_release(&names);
	if (in->pushes)
		qsort(in->push, in->pushes, sizeof *in->push, by_seq);
	return 0;
}

void inbox_release(struct inbox *in)
{
	for (size_t i = 0; i < in->pushes; i++)
		free(in->push[i].path);
	free(in->push);
	*in = (struct inbox){0};
}

/* A regular file of the right owner, and no larger than a push can be. */
static int open_push(const struct pass *p, const struct inbox_push *push,
	int *fd, struct dl_err *e)
{
	uint64_t most = p->layout->fragment[push->name.fragment].elements *
				sizeof(float) +
			HEADER_MAX;
	struct stat st;
	int code = dl_spool_open_file(p->spool, push->path, fd, &st, e);

	if (code == DL_DATA)
		return dl_fail(e, DL_DATA, "not a regular file");
	if (code)
		return code;
	if (st.st_uid != push->owner && st.st_uid != geteuid())
		code = dl_fail(e, DL_DATA, "is not its learner's");
	else if ((uint64_t)st.st_size > most)
		code = dl_fail(e, DL_DATA, "larger than its fragment");
	if (code)
		close(*fd);
	return code;
}

/* What its name and its folder say, it says too. */
static int check_names(const struct inbox_push *push, const struct stashed *s,
	struct dl_err *e)
{
	const struct dl_message *m = &s->push;

	if (strcmp(s->learner, push->learner) != 0)
		return dl_fail(e, DL_DATA, "made by %s", s->learner);
	if (m->fragment != push->name.fragment || m->seq != push->name.seq ||
		m->step != push->name.step)
		return dl_fail(e, DL_DATA, "is named otherwise");
	return 0;
}

/* Before the core hears of it; without it the run goes on all the same. */
static void record(
	const struct pass *p, const struct inbox_push *push, uint64_t id)
{
	const char *folder = p->options->record;
	struct dl_err e;

	if (folder && stash_record(&p->stash, id, folder, push->name.hash, &e))
		cmd_warn("%s: a push is not recorded", e.text);
}

/* DL_NO when it is to wait for what explains it. */
static int take_copy(struct pass *p, struct inbox_push *push, uint64_t id,
	int gone, int stale, struct dl_err *e)
{
	struct stashed s;
	int code = stash_look(&p->stash, id, p->run->name, &s, e);

	if (!code)
		code = check_names(push, &s, e);
	if (!code && gone) {
		code = give_in_order(p, &s, e);
		if (!code)
			give_explain(p, &s);
	}
	if (!code && !stale)
		code = give_check(p, &s, e);
	if (!code) {
		record(p, push, id);
		code = give(p, &s, id, e);
	}
	stashed_close(&s);
	return code;
}

static void settle(struct pass *p, struct inbox_push *push)
{
	const struct book_answer *a = &p->book.last;

	p->report.taken[a->word]++;
	if (a->word == DL_TAKEN_REFUSED)
		p->report.refused[a->reason]++;
	push->fate = a->word == DL_TAKEN_REFUSED ? INBOX_REFUSED : INBOX_TAKEN;
	cmd_debug("%s: %s%s%s", push->path, dl_taken_name(a->word),
		a->reason ? ", " : "",
		a->reason ? dl_refusal_name(a->reason) : "");
}

/* 0, also when it is left or set apart; else what ends the pass. */
static int take(
	struct pass *p, struct inbox_push *push, int gone, struct dl_err *e)
{
	int stale = p->now - seen_since(&p->seen, push->path, "", p->now) >=
		    p->options->stale_ns;
	struct dl_err why;
	uint64_t id = 0;
	int fd, code = open_push(p, push, &fd, &why);

	if (!code) {
		code = stash_copy(&p->stash, fd, push->name.hash, &id, &why);
		close(fd);
		if (code == DL_CANTCREAT || code == DL_IOERR)
			return dl_fail(e, code, "%s", why.text);
	}
	if (!code) {
		code = take_copy(p, push, id, gone, stale, &why);
		if (!code) {
			settle(p, push);
			return 0;
		}
		stash_remove(&p->stash, id);
	} else if (code == DL_NOINPUT) {
		return 0;
	}
	if (gone && code != DL_DATA) {
		cmd_debug("%s: of a process that is gone: %s", push->path,
			why.text);
		return 0;
	}
	if (code == DL_DATA || stale) {
		push->fate = INBOX_REFUSED;
		p->report.unfit++;
		cmd_note("%s: %s", push->path, why.text);
	} else {
		p->report.waiting++;
		cmd_debug("%s: waits: %s", push->path, why.text);
	}
	return 0;
}

/* The instance that it says it is of; 0 when it cannot be read. Only the order
 * in which pushes are taken hangs on it. */
static uint64_t instance_of(const struct pass *p, const struct inbox_push *push)
{
	unsigned char length[8];
	struct dl_buf json = DL_BUF_INIT;
	struct dl_header h;
	uint64_t instance = 0, n;
	int fd;

	if (open_push(p, push, &fd, NULL))
		return 0;
	n = dl_read_full(fd, length, sizeof length) == sizeof length
		    ? dl_le64(length)
		    : HEADER_MAX;
	if (n < HEADER_MAX) {
		dl_buf_reserve(&json, n);
		if (dl_read_full(fd, json.data, n) == (ssize_t)n &&
			!dl_header_parse(&h, json.data, n, NULL)) {
			dl_header_meta_u64(&h, "dl.instance", &instance, NULL);
			dl_header_release(&h);
		}
	}
	dl_buf_free(&json);
	close(fd);
	return instance;
}

/* Is it of a process that was there under that name before the one of now? */
static int is_of_gone(const struct pass *p, const struct roll *r,
	const struct inbox_push *push)
{
	const struct roll_learner *l = roll_find(r, push->learner);
	uint64_t instance = l ? instance_of(p, push) : 0;

	return instance && instance != l->says.instance;
}

int inbox_take_gone(struct inbox *in, struct pass *p, const struct roll *r,
	struct dl_err *e)
{
	int code = 0;

	for (size_t i = 0; !code && i < in->pushes && !pass_stopped(p); i++)
		if (is_of_gone(p, r, in->push + i))
			code = take(p, in->push + i, 1, e);
	return code;
}

int inbox_take(struct inbox *in, struct pass *p, struct dl_err *e)
{
	int code = 0;

	for (size_t i = 0; !code && i < in->pushes && !pass_stopped(p); i++)
		if (in->push[i].fate == INBOX_WAITS)
			code = take(p, in->push + i, 0, e);
	return code;
}

int inbox_waits(void *inbox, const char *learner)
{
	const struct inbox *in = inbox;

	for (size_t i = 0; i < in->pushes; i++)
		if (in->push[i].fate == INBOX_WAITS &&
			!strcmp(in->push[i].learner, learner))
			return 1;
	return 0;
}

/* To refused/, where people can look at it. */
static void set_apart(const struct pass *p, const struct inbox_push *push)
{
	char *to = dl_sprintf(
		"refused/%s.%s", push->learner, strrchr(push->path, '/') + 1);

	if (dl_spool_move(p->spool, push->path, to, NULL))
		dl_spool_remove(p->spool, push->path, NULL);
	free(to);
}

void inbox_clear(const struct inbox *in, struct pass *p)
{
	for (size_t i = 0; i < in->pushes; i++) {
		const struct inbox_push *push = in->push + i;

		if (push->fate == INBOX_TAKEN)
			dl_spool_remove(p->spool, push->path, NULL);
		else if (push->fate == INBOX_REFUSED)
			set_apart(p, push);
	}
}
