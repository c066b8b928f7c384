#include "cmd/replay/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/replay/from.h"
#include "cmd/replay/remake.h"
#include "cmd/replay/state.h"
#include "state/head.h"
#include "state/replay.h"

struct replay {
	const struct replay_options *options;
	struct dl_replay run;
	struct remake *remake;	      /* NULL: decisions only */
	struct dl_sync_saved saved;   /* what the syncer's HEAD said */
	struct dl_sync_action *merge; /* P: what the next MERGED is of */
	uint32_t fragments;
	int met; /* who is left out was there */
};

static const struct dl_head_files *files(const struct replay *r, uint32_t p)
{
	return r->remake ? dl_store_files(r->remake->globals.store, p) : NULL;
}

static void print(const struct replay *r, const struct dl_sync_action *a,
	size_t contributions)
{
	uint32_t p = a->fragment;
	const struct dl_head_files *made = files(r, p);
	struct dl_version v = r->saved.fragment[p].version;

	printf("%u\t%" PRIu64 ".%" PRIu64 "\t%zu\t%s\t%s\t", p, v.epoch,
		v.number, contributions,
		made ? made->hash[DL_STORE_GLOBAL] : "-",
		made ? made->hash[DL_STORE_MOMENTUM] : "-");
	for (size_t i = 0; i < a->parts; i++)
		printf("%s%" PRIu64, i ? "," : "", a->part[i].push);
	puts(a->parts ? "" : "-");
}

/* The parts of a merge that are not left out, and how many learners' they are;
 * those of one are neighbours. */
static size_t choose(
	const struct replay *r, uint32_t p, struct dl_sync_action *out)
{
	const struct dl_sync_action *a = &r->merge[p];
	const char *without = r->options->without, *last = NULL;
	struct dl_sync_part *part = dl_alloc_array(a->parts, sizeof *part);
	size_t n = 0, learners = 0;

	for (size_t i = 0; i < a->parts; i++) {
		const char *name = a->part[i].learner;

		if (without && !strcmp(name, without))
			continue;
		if (!last || strcmp(name, last) != 0)
			learners++;
		last = name;
		part[n++] = a->part[i];
	}
	*out = *a;
	out->part = part;
	out->parts = n;
	return learners;
}

/* The merge that was decided before is made now that it was committed: what a
 * crash undid is never made. */
static int merge(struct replay *r, uint32_t p, struct dl_err *e)
{
	struct dl_sync_action a;
	size_t contributions = choose(r, p, &a);
	int code = 0;

	dl_sync_saved_release(&r->saved);
	dl_sync_save(r->run.core, p, &r->saved);
	if (r->remake)
		code = remake_merge(r->remake, &a, &r->saved, e);
	if (!code)
		print(r, &a, contributions);
	free((void *)a.part);
	return code;
}

/* The syncer may have died between a commit and the line that tells of it. */
static int merge_untold(
	struct replay *r, const struct dl_tape_start *start, struct dl_err *e)
{
	int code = 0;

	if (!start->restored || start->saved.fragments != r->fragments)
		return 0;
	for (uint32_t p = 0; !code && p < r->fragments; p++) {
		struct dl_version next = dl_sync_version(r->run.core, p);

		next.number++;
		if (dl_sync_merging(r->run.core, p) &&
			!dl_version_cmp(start->saved.fragment[p].version, next))
			code = merge(r, p, e);
	}
	return code;
}

/* One that died before HEAD said that it had started leaves its start only. */
static int was_no_start(
	const struct replay *r, const struct dl_tape_start *start)
{
	return !r->run.events && r->run.start.restored &&
	       !state_check(&r->run.start.saved, start, NULL);
}

/* The store of a checkpoint that start went on from; DL_NO: of none. */
static int take_from(
	struct replay *r, const struct dl_tape_start *start, struct dl_err *e)
{
	const char *from = r->options->from;
	char *path = NULL;
	int64_t at;
	int code = DL_NO;

	if (from && start->restored)
		code = replay_from(from, start, &path, &at, e);
	if (!code && r->remake)
		code = remake_from(r->remake, start, path, at, e);
	free(path);
	return code;
}

static int go_on(
	struct replay *r, const struct dl_tape_start *start, struct dl_err *e)
{
	struct dl_err why;
	int code = 0, back;

	if (was_no_start(r, start))
		return 0;
	code = merge_untold(r, start, e);
	if (!code)
		code = state_check(&r->saved, start, e);
	if (code != DL_NO)
		return code;
	/* Unless it was set back. */
	back = take_from(r, start, &why);
	if (back && back != DL_NO)
		*e = why;
	return back == DL_NO ? code : back;
}

static int begin(
	struct replay *r, const struct dl_tape_start *start, struct dl_err *e)
{
	int code;

	r->fragments = start->config.schedule.fragments;
	r->merge = dl_alloc_array(r->fragments, sizeof *r->merge);
	if (!r->remake)
		return 0;
	code = take_from(r, start, e);
	if (code != DL_NO)
		return code;
	if (!r->options->sync.model)
		return dl_fail(e, DL_DATA,
			"no checkpoint that the run begins from: which model?");
	code = remake_begin(r->remake, start, e);
	if (code || !start->restored)
		return code;
	if (state_check(dl_store_saved(r->remake->globals.store), start, NULL))
		return dl_fail(e, DL_DATA, "the run does not begin here");
	return 0;
}

static int on_start(
	void *ctx, const struct dl_tape_start *start, struct dl_err *e)
{
	struct replay *r = ctx;
	int code = r->merge ? go_on(r, start, e) : begin(r, start, e);

	if (code)
		return code;
	dl_sync_saved_release(&r->saved);
	state_begin(&r->saved, start);
	return r->remake && start->restored
		       ? remake_restart(r->remake, &r->saved, e)
		       : 0;
}

/* What a learner is left out with that was refused then: the core is to make
 * the same of all else, not knowing what was in it. */
static int counts(
	void *ctx, const struct dl_sync *core, const struct dl_sync_event *ev)
{
	const struct replay *r = ctx;

	if (ev->kind != DL_EV_PUSH || strcmp(ev->learner, r->options->without))
		return 1;
	return dl_sync_judge_push(core, ev) == DL_REFUSED_NOT;
}

/* Does the merge come to what the tape says of it? */
static int compare(const struct replay *r, const struct dl_tape_line *line,
	struct dl_err *e)
{
	const struct dl_sync_event *ev = &line->event;
	const struct dl_head_files *made = files(r, ev->fragment);
	const struct dl_tape_made *was = &line->made;
	int values, momentum;

	if (!made || r->options->without || !*was->values)
		return 0;
	values = strcmp(made->hash[DL_STORE_GLOBAL], was->values) != 0;
	momentum = strcmp(made->hash[DL_STORE_MOMENTUM], was->momentum) != 0;
	if (!values && !momentum)
		return 0;
	return dl_fail(e, DL_NO,
		"fragment %u, version %" PRIu64 ".%" PRIu64 ": other %s",
		ev->fragment, ev->version.epoch, ev->version.number,
		!momentum ? "values"
		: values  ? "values and momentum"
			  : "momentum");
}

static int on_event(
	void *ctx, const struct dl_tape_line *line, struct dl_err *e)
{
	struct replay *r = ctx;
	const struct dl_sync_event *ev = &line->event;
	const char *without = r->options->without;
	int code = 0;

	if (without && ev->kind == DL_EV_JOIN)
		r->met |= !strcmp(ev->learner, without);
	if (ev->kind == DL_EV_PUSH && r->remake)
		code = remake_push(r->remake, ev, e);
	if (ev->kind == DL_EV_MERGED) {
		code = merge(r, ev->fragment, e);
		if (!code)
			code = compare(r, line, e);
	}
	return code;
}

static void on_action(void *ctx, const struct dl_sync_action *a)
{
	struct replay *r = ctx;

	if (a->kind == DL_ACT_MERGE)
		r->merge[a->fragment] = *a;
	if (a->kind == DL_ACT_RELEASE && r->remake)
		remake_release(r->remake, a->push);
}

static int read_tape(struct replay *r, struct dl_err *e)
{
	const struct replay_options *o = r->options;
	const struct dl_replay_watcher w = {
		r, on_start, o->without ? counts : NULL, on_event, on_action};
	struct dl_tape_reader reader;
	int fd = STDIN_FILENO, code = 0;

	if (strcmp(o->tape, "-"))
		code = dl_open_read(o->tape, &fd, e);
	if (code)
		return code;
	dl_tape_reader_init(&reader, fd, o->tape);
	puts("# fragment\tversion\tcontributions\tvalues\tmomentum"
	     "\tpushes");
	code = dl_replay(&r->run, &reader, &w, e);
	dl_tape_reader_release(&reader);
	if (!code && o->without && !r->met)
		code = dl_fail(e, DL_NOINPUT, "%s: no learner %s in it",
			o->tape, o->without);
	if (fd != STDIN_FILENO)
		close(fd);
	return code;
}

int replay_run(struct replay_options *o, struct dl_err *e)
{
	struct remake remake;
	struct replay r = {.options = o};
	int code = 0;

	if (o->record) {
		code = remake_open(&remake, &o->sync, o->record, e);
		r.remake = &remake;
	}
	if (!code)
		code = read_tape(&r, e);
	dl_replay_release(&r.run);
	if (r.remake)
		remake_close(r.remake);
	dl_sync_saved_release(&r.saved);
	free(r.merge);
	return code;
}
