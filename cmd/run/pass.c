#include "cmd/run/pass.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/output.h"
#include "cmd/cmd.h"
#include "cmd/run/collect.h"
#include "cmd/run/give.h"
#include "cmd/run/inbox.h"
#include "cmd/run/publish.h"
#include "cmd/run/resume.h"
#include "cmd/run/roll.h"
#include "cmd/sync/create.h"
#include "cmd/sync/start.h"
#include "link/signals.h"
#include "link/spool_file.h"

int pass_stopped(struct pass *p)
{
	int signal;

	while ((signal = dl_signals_next()))
		p->stopped = 1;
	return p->stopped;
}

static void tick(struct pass *p)
{
	int64_t wall = dl_wall();

	if (p->now < wall)
		p->now = wall;
}

void pass_event(struct pass *p, struct dl_sync_event *ev)
{
	struct dl_sync_action a;

	tick(p);
	ev->now = p->now;
	sync_note(p->tape, ev, &p->globals, &p->trail, p->now);
	book_event(&p->book, ev);
	dl_sync_event(p->core, ev);
	while (dl_sync_next(p->core, &a)) {
		dl_trail_add(&p->trail, &a);
		book_action(&p->book, &a);
	}
}

/* The store, which is made when there is none; two passes may begin at once,
 * and either may have made it. */
static int open_store(struct pass *p, struct dl_err *e)
{
	const struct sync_options *o = &p->options->sync;
	struct dl_err why;
	int code = globals_begin(&p->globals, o, e);

	if (code != DL_NOINPUT)
		return code;
	p->fresh = !sync_create(o, &why);
	code = globals_begin(&p->globals, o, e);
	return code == DL_NOINPUT ? dl_fail(e, why.code, "%s", why.text) : code;
}

static int open_spool(struct pass *p, struct dl_err *e)
{
	const struct run_options *o = p->options;
	int code = 0;

	if (o->sync.model)
		code = dl_make_folder(o->spool, e);
	if (!code)
		code = dl_spool_open(o->spool, &p->spool, e);
	return code;
}

static int begin(struct pass *p, struct dl_err *e)
{
	static const int caught[] = {SIGTERM, SIGINT};
	const struct sync_options *o = &p->options->sync;
	int fd, code = dl_signals_open(
			caught, sizeof caught / sizeof *caught, &fd, e);

	if (!code && o->output)
		code = dl_output_check(o->output, e);
	if (!code && p->options->record)
		code = dl_make_folder(p->options->record, e);
	if (!code)
		code = open_spool(p, e);
	if (!code)
		code = open_store(p, e);
	if (code)
		return code;
	p->run = dl_store_run(p->globals.store);
	p->layout = p->globals.layout;
	seen_open(&p->seen, dl_sprintf("%s/seen", o->store));
	code = sync_check_run(o, p->run, e);
	if (!code)
		code = publish_begin(p, e);
	if (!code)
		code = publish_read(p, e);
	if (!code)
		code = stash_open(&p->stash, o->store, e);
	if (!code)
		code = resume(p, e);
	/* An id that the core still holds is nobody else's, file or not. */
	if (!code && p->stash.last < p->book.ids)
		p->stash.before = p->stash.last = p->book.ids;
	return code;
}

/* The run is to end when somebody asks for it, and an end that the core has
 * forgotten goes on. */
static void tell_end(struct pass *p)
{
	struct dl_sync_event end = {.kind = DL_EV_END, .loss = NAN};
	struct dl_sync_info info;
	struct stat st;

	dl_sync_info(p->core, &info);
	if (!info.ending &&
		(!fstatat(p->spool, "end", &st, AT_SYMLINK_NOFOLLOW) ||
			p->latest.state != DL_SPOOL_RUNNING))
		pass_event(p, &end);
}

/* Everything that has happened since the last pass becomes events. */
static int gather(struct pass *p, struct inbox *in, struct dl_err *e)
{
	struct dl_sync_event time = {.kind = DL_EV_TIME, .loss = NAN};
	struct roll roll = {0};
	int code = inbox_list(in, p, e);

	if (!code)
		code = roll_read(&roll, p, e);
	/* First what may be of a process whose name another has now. */
	if (!code)
		code = give_again(p, &roll, e);
	if (!code)
		code = inbox_take_gone(in, p, &roll, e);
	if (!code) {
		roll_tell(&roll, p);
		code = inbox_take(in, p, e);
	}
	if (!code) {
		tell_end(p);
		roll_tell_last(&roll, p, inbox_waits, in);
		pass_event(p, &time);
	}
	roll_release(&roll);
	return code;
}

/* A push that is not what it was can never be merged: the next pass starts
 * from HEAD, and without it. */
static int load_push(struct pass *p, uint64_t id, struct dl_err *e)
{
	int code = give_load(p, id, e);

	if (code == DL_DATA || code == DL_NOINPUT) {
		stash_remove(&p->stash, id);
		resume_forget(p);
	}
	return code;
}

/* One merge that the core has decided on, to its commit. */
static int merge(
	struct pass *p, const struct dl_sync_action *a, struct dl_err *e)
{
	struct globals *g = &p->globals;
	uint32_t f = a->fragment;
	struct dl_sync_event merged = {.kind = DL_EV_MERGED,
		.fragment = f,
		.version = a->version,
		.loss = NAN};
	struct dl_sync_saved saved;
	struct dl_err why;
	int code = globals_load(g, f, e);

	for (size_t i = 0; !code && i < a->parts; i++)
		code = load_push(p, a->part[i].push, e);
	if (!code && globals_merge(g, a, &why))
		cmd_warn("fragment %u is left as it is: %s", f, why.text);
	for (size_t i = 0; i < a->parts; i++)
		pushes_drop_id(&g->pushes, a->part[i].push);
	if (code)
		return code;
	dl_sync_save(p->core, f, &saved);
	code = globals_commit(g, f, &saved, e);
	dl_sync_saved_release(&saved);
	if (code)
		return code;
	p->report.merged++;
	pass_event(p, &merged);
	return 0;
}

/* A merge may lead to the next of the same fragment. */
static int merge_all(struct pass *p, struct dl_err *e)
{
	int code = 0;

	while (!code && p->book.merges && !pass_stopped(p)) {
		struct dl_sync_action a = p->book.merge[0];

		code = merge(p, &a, e);
	}
	return code;
}

/* What the core has released, once its tape says so. */
static void clear_stash(struct pass *p)
{
	struct stash *s = &p->stash;
	uint64_t before = s->before;

	for (size_t i = 0; i < s->ids; i++)
		if (s->id[i] && !book_holds(&p->book, s->id[i]))
			stash_remove(s, s->id[i]);
	for (uint64_t id = before + 1; id <= s->last; id++)
		if (!book_holds(&p->book, id))
			stash_remove(s, id);
}

static int work(struct pass *p, struct dl_err *e)
{
	struct inbox in = {0};
	int code = gather(p, &in, e), merged;

	if (!code)
		code = dl_tape_sync(p->tape, e);
	if (!code)
		inbox_clear(&in, p);
	inbox_release(&in);
	if (code)
		return code;
	/* What was merged before one failed is shown all the same. */
	merged = merge_all(p, e);
	code = dl_tape_sync(p->tape, merged ? NULL : e);
	if (code)
		return merged ? merged : code;
	clear_stash(p);
	code = publish(p, merged ? NULL : e);
	if (merged || code)
		return merged ? merged : code;
	collect(p);
	seen_save(&p->seen);
	return 0;
}

static int write_model(struct pass *p, const char *output, struct dl_err *e)
{
	int code = globals_load_all(&p->globals, e);

	return code ? code : globals_write_model(&p->globals, output, e);
}

/* What a pass that did all it could says to whoever started it. */
static int conclude(struct pass *p, struct dl_err *e)
{
	const char *output = p->options->sync.output;
	struct dl_sync_info info;
	char why[400];

	report_show(p);
	dl_sync_info(p->core, &info);
	if (info.done) {
		cmd_note("run %s is over", p->run->name);
		return output ? write_model(p, output, e) : 0;
	}
	if (p->report.merged || p->stopped)
		return 0;
	report_why(p, why, sizeof why);
	cmd_note("%s: %s", p->options->spool, why);
	return DL_TEMPFAIL;
}

static int end(struct pass *p, int code)
{
	struct dl_err e;

	if (p->tape && dl_tape_close(p->tape, &e) && !code)
		code = cmd_fail(&e);
	dl_sync_free(p->core);
	book_release(&p->book);
	stash_release(&p->stash);
	seen_release(&p->seen);
	dl_spool_latest_release(&p->latest);
	globals_close(&p->globals);
	if (p->spool >= 0)
		close(p->spool);
	return code;
}

int pass_run(const struct run_options *o)
{
	struct pass p = {.options = o, .spool = -1};
	struct dl_err e;
	int code;

	tick(&p);
	code = begin(&p, &e);
	if (!code)
		code = work(&p, &e);
	if (code)
		return end(&p, cmd_fail(&e));
	code = conclude(&p, &e);
	if (code && code != DL_TEMPFAIL)
		code = cmd_fail(&e);
	return end(&p, code);
}
