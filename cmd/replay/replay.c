#include "cmd/replay/replay.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "cmd/cmd.h"
#include "cmd/replay/recorded.h"
#include "cmd/sync/create.h"
#include "cmd/sync/globals.h"
#include "state/replay.h"
#include "tensor/records.h"

struct replay {
	struct replay_options *options;
	struct recorded recorded;
	struct dl_replay run;
	struct globals globals;	      /* from the first start on */
	struct dl_sync_action *merge; /* P: what the next MERGED is of */
	int code; /* the first failure: all else is passed over */
	struct dl_err *e;
};

/* Whoever looks on cannot say stop. */
static void keep(struct replay *r, int code)
{
	if (!r->code)
		r->code = code;
}

static int begin(struct replay *r, const struct dl_tape_start *start)
{
	struct sync_options *o = &r->options->sync;

	if (start->restored)
		return dl_fail(r->e, DL_DATA,
			"%s: does not begin where the run began",
			r->options->tape);
	o->run = start->run;
	o->h = start->config.schedule.h;
	if (sync_create(o, r->e) || globals_open(&r->globals, o, r->e))
		return r->e->code;
	if (strcmp(start->layout, r->globals.layout->hash) != 0)
		return dl_fail(r->e, DL_DATA, "%s: of another layout",
			r->options->tape);
	r->merge =
		dl_alloc_array(r->globals.layout->fragments, sizeof *r->merge);
	return 0;
}

/* The syncer has started again, from its store; pushes that were not merged
 * came once more. */
static int go_on(struct replay *r, const struct dl_tape_start *start)
{
	struct globals *g = &r->globals;
	const struct dl_sync_saved *here = dl_store_saved(g->store);
	struct dl_sync_saved risen;
	int code;

	if (!start->restored || start->saved.fragments != here->fragments)
		return dl_fail(r->e, DL_DATA, "%s: another run begins in it",
			r->options->tape);
	for (uint32_t p = 0; p < here->fragments; p++)
		if (dl_version_cmp(start->saved.fragment[p].version,
			    here->fragment[p].version))
			return dl_fail(r->e, DL_DATA,
				"%s: a merge of fragment %u is not in it",
				r->options->tape, p);
	while (g->pushes.first)
		pushes_drop(&g->pushes, g->pushes.first);
	dl_sync_save(r->run.core, UINT32_MAX, &risen);
	code = dl_store_commit_saved(g->store, &risen, r->e);
	dl_sync_saved_release(&risen);
	return code;
}

static void on_start(void *ctx, const struct dl_tape_start *start)
{
	struct replay *r = ctx;

	if (!r->code)
		keep(r, r->merge ? go_on(r, start) : begin(r, start));
}

/* The push of the file, as it came. */
static int load(struct replay *r, const struct dl_records *file,
	const struct dl_sync_event *ev)
{
	const struct dl_records_entry *entry = file->record;
	struct pushes *pushes = &r->globals.pushes;
	struct push *push;

	if (pushes_begin(pushes, ev->fragment, &entry->header, &push, r->e))
		return r->e->code;
	if (dl_records_read(file, entry->at, push->data, push->size, r->e))
		return r->e->code;
	pushes_arrived(pushes, push);
	push->id = ev->push;
	return push->norm != ev->norm && isfinite(ev->norm)
		       ? dl_fail(r->e, DL_DATA, "not what the tape tells of")
		       : 0;
}

static int on_push(struct replay *r, const struct dl_sync_event *ev)
{
	const char *path = recorded_find(&r->recorded, ev);
	struct dl_records file;
	int code;

	if (!path)
		return dl_fail(r->e, DL_NOINPUT,
			"%s: push %" PRIu64
			" of fragment %u by %s is not there",
			r->options->record, ev->seq, ev->fragment, ev->learner);
	code = dl_records_open(&file, path, r->e);
	if (!code && load(r, &file, ev))
		code = dl_at(r->e, "%s", path);
	dl_records_close(&file);
	return code;
}

static void print_hash(const float *x, size_t n)
{
	char hex[DL_HASH_HEX];
	struct dl_hash h;

	dl_hash_init(&h);
	dl_hash_add(&h, x, n * sizeof *x);
	dl_hash_hex(&h, hex);
	printf("\t%s", hex);
}

/* The outer step that was made then, or what is left of it. */
static int merge(struct replay *r, uint32_t p)
{
	struct dl_sync_action a = r->merge[p];
	const char *without = r->options->without;
	struct dl_sync_part *part = dl_alloc_array(a.parts, sizeof *part);
	size_t n = 0;
	int code = 0;

	for (size_t i = 0; i < a.parts; i++)
		if (!without || strcmp(a.part[i].learner, without) != 0)
			part[n++] = a.part[i];
	a.part = part;
	a.parts = n;
	if (n)
		code = globals_merge(&r->globals, &a, r->e);
	free(part);
	return code;
}

/* The merge that was decided before is made now that it was committed: what a
 * crash undid is never made. */
static int on_merged(struct replay *r, const struct dl_sync_event *ev)
{
	struct globals *g = &r->globals;
	uint32_t p = ev->fragment;
	size_t n = g->layout->fragment[p].elements;
	struct dl_sync_saved saved;
	int code = merge(r, p);

	if (code && code != DL_NO && code != DL_DATA)
		return code;
	dl_sync_save(r->run.core, p, &saved);
	code = globals_commit(g, p, &saved, r->e);
	dl_sync_saved_release(&saved);
	if (code)
		return code;
	printf("%u\t%" PRIu64 ".%" PRIu64, p, ev->version.epoch,
		ev->version.number);
	print_hash(globals_values(g, p), n);
	print_hash(g->momentum[p], n);
	putchar('\n');
	return 0;
}

/* What a learner is left out with that was refused then: the core is to make
 * the same of all else, never having heard of it. */
static int counts(
	void *ctx, const struct dl_sync *core, const struct dl_sync_event *ev)
{
	const struct replay *r = ctx;
	const char *without = r->options->without;

	if (!without || ev->kind != DL_EV_PUSH || strcmp(ev->learner, without))
		return 1;
	return dl_sync_judge_push(core, ev) == DL_REFUSED_NOT;
}

static void on_event(void *ctx, const struct dl_sync_event *ev)
{
	struct replay *r = ctx;

	if (r->code)
		return;
	if (ev->kind == DL_EV_PUSH)
		keep(r, on_push(r, ev));
	if (ev->kind == DL_EV_MERGED)
		keep(r, on_merged(r, ev));
}

static void on_action(void *ctx, const struct dl_sync_action *a)
{
	struct replay *r = ctx;

	if (r->code)
		return;
	if (a->kind == DL_ACT_MERGE)
		r->merge[a->fragment] = *a;
	if (a->kind == DL_ACT_RELEASE)
		pushes_drop_id(&r->globals.pushes, a->push);
}

static int read_tape(struct replay *r)
{
	const struct dl_replay_watcher w = {
		r, on_start, counts, on_event, on_action};
	const char *path = r->options->tape;
	struct dl_tape_reader reader;
	struct dl_err bad;
	int fd = STDIN_FILENO, code = 0;

	if (strcmp(path, "-"))
		code = dl_open_read(path, &fd, r->e);
	if (code)
		return code;
	dl_tape_reader_init(&reader, fd, path);
	puts("# fragment\tversion\tvalues\tmomentum");
	code = dl_replay(&r->run, &reader, &w, &bad);
	if (code && !r->code)
		*r->e = bad;
	dl_tape_reader_release(&reader);
	if (fd != STDIN_FILENO)
		close(fd);
	return r->code ? r->code : code;
}

int replay_run(struct replay_options *o, struct dl_err *e)
{
	struct replay r = {.options = o, .e = e};
	int code = recorded_open(&r.recorded, o->record, e);

	if (!code)
		code = read_tape(&r);
	dl_replay_release(&r.run);
	globals_close(&r.globals);
	recorded_close(&r.recorded);
	free(r.merge);
	return code;
}
