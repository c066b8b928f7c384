#include "cmd/replay/remake.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/sync/create.h"
#include "state/checkpoint.h"
#include "tensor/records.h"

int remake_open(struct remake *r, struct sync_options *o, const char *record,
	struct dl_err *e)
{
	*r = (struct remake){.options = o, .record = record};
	return recorded_open(&r->recorded, record, e);
}

void remake_close(struct remake *r)
{
	recorded_close(&r->recorded);
	globals_close(&r->globals);
}

int remake_begin(
	struct remake *r, const struct dl_tape_start *start, struct dl_err *e)
{
	struct sync_options *o = r->options;

	o->run = start->run;
	o->h = start->config.schedule.h;
	o->layout_hash = start->layout;
	return sync_create(o, e) ? e->code : globals_open(&r->globals, o, e);
}

/* Its files are the next one's to replace, or to remove as leftovers. */
static int drop_store(struct remake *r, struct dl_err *e)
{
	char *head;
	int code = 0;

	if (!r->globals.store)
		return 0;
	globals_close(&r->globals);
	head = dl_sprintf("%s/HEAD", r->options->store);
	if (unlink(head))
		code = dl_fail_sys(e, DL_IOERR, "%s", head);
	free(head);
	return code;
}

int remake_from(struct remake *r, const struct dl_tape_start *start,
	const char *path, int64_t at, struct dl_err *e)
{
	struct sync_options *o = r->options;
	int code = drop_store(r, e);

	if (!code)
		code = dl_checkpoint_unpack(path, o->store, at, e);
	if (!code)
		code = globals_open(&r->globals, o, e);
	if (!code && strcmp(r->globals.layout->hash, start->layout) != 0)
		code = dl_fail(e, DL_DATA, "%s: of another layout", path);
	return code;
}

int remake_restart(
	struct remake *r, const struct dl_sync_saved *risen, struct dl_err *e)
{
	struct globals *g = &r->globals;

	pushes_clear(&g->pushes);
	return dl_store_commit_saved(g->store, risen, e);
}

/* The push of the file, as it came; DL_NO when it is not the one of ev. */
static int load(struct remake *r, const struct dl_records *file,
	const struct dl_sync_event *ev, struct dl_err *e)
{
	const struct dl_records_entry *entry = file->record;
	struct pushes *pushes = &r->globals.pushes;
	struct push *push;

	if (pushes_begin(pushes, ev->fragment, &entry->header, &push, e))
		return e->code;
	if (dl_records_read(file, entry->at, push->data, push->size, e))
		return e->code;
	pushes_arrived(pushes, push);
	push->id = ev->push;
	if (push->norm == ev->norm ||
		(!isfinite(push->norm) && !isfinite(ev->norm)))
		return 0;
	pushes_drop(pushes, push);
	return dl_fail(e, DL_NO, "not what the tape tells of");
}

static int load_file(struct remake *r, const char *path,
	const struct dl_sync_event *ev, struct dl_err *e)
{
	struct dl_records file;
	int code = recorded_read(&file, path, e);

	if (!code && load(r, &file, ev, e))
		code = dl_at(e, "%s", path);
	dl_records_close(&file);
	return code;
}

/* Under one number there may be several, of which one counted: the others were
 * answered with "again". */
int remake_push(
	struct remake *r, const struct dl_sync_event *ev, struct dl_err *e)
{
	const struct recorded_push *push = recorded_find(&r->recorded, ev);
	int code = 0;

	for (; push; push = recorded_next(&r->recorded, push)) {
		code = load_file(r, push->path, ev, e);
		if (code != DL_NO)
			break;
	}
	return code ? dl_at(e, "fragment %u, push %" PRIu64 " of %s",
			      ev->fragment, ev->seq, ev->learner)
		    : 0;
}

void remake_release(struct remake *r, uint64_t push)
{
	pushes_drop_id(&r->globals.pushes, push);
}

static int check_parts(const struct remake *r, const struct dl_sync_action *a,
	struct dl_err *e)
{
	for (size_t i = 0; i < a->parts; i++)
		if (!pushes_hold(&r->globals.pushes, a->part[i].push))
			return dl_fail(e, DL_NOINPUT,
				"fragment %u, version %" PRIu64 ".%" PRIu64
				": a push of %s is not in %s",
				a->fragment, a->version.epoch,
				a->version.number, a->part[i].learner,
				r->record);
	return 0;
}

int remake_merge(struct remake *r, const struct dl_sync_action *a,
	const struct dl_sync_saved *saved, struct dl_err *e)
{
	int code = check_parts(r, a, e);

	if (code)
		return code;
	code = a->parts ? globals_merge(&r->globals, a, e) : 0;
	/* What could not be merged was left as it was then, too. */
	if (code && code != DL_NO && code != DL_DATA)
		return code;
	return globals_commit(&r->globals, a->fragment, saved, e);
}
