#include "state/replay.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int start(struct dl_replay *v, struct dl_tape_line *line,
	const struct dl_replay_watcher *w, struct dl_err *e)
{
	int code = w->start ? w->start(w->ctx, &line->start, e) : 0;

	if (code)
		return code;
	dl_sync_free(v->core);
	dl_sync_saved_release(&v->start.saved);
	/* The line is reused, and what it owns moves. */
	v->start = line->start;
	memset(&line->start.saved, 0, sizeof line->start.saved);
	v->core = v->start.restored
			  ? dl_sync_restore(&v->start.config, &v->start.saved)
			  : dl_sync_new(&v->start.config);
	dl_trail_init(&v->trail);
	v->events = 0;
	return 0;
}

/* What the tape tells of a merge that the core would not have made. */
static const char *disagreement(const struct dl_replay *v,
	const struct dl_tape_line *line, const struct dl_replay_watcher *w)
{
	const struct dl_sync_event *ev = &line->event;
	struct dl_version next = dl_sync_version(v->core, ev->fragment);
	char trail[DL_TRAIL_HEX];

	if (ev->kind != DL_EV_MERGED)
		return NULL;
	next.number++;
	if (!dl_sync_merging(v->core, ev->fragment) ||
		dl_version_cmp(ev->version, next))
		return "that merge was not decided on";
	if (w->counts || !*line->made.trail)
		return NULL;
	dl_trail_hex(&v->trail, trail);
	return strcmp(trail, line->made.trail)
		       ? "other decisions came before it"
		       : NULL;
}

static int check(struct dl_replay *v, const struct dl_tape_line *line,
	const struct dl_replay_watcher *w, struct dl_err *e)
{
	const struct dl_sync_event *ev = &line->event;
	const char *fact = disagreement(v, line, w);

	if (!fact)
		return 0;
	return dl_fail(e, DL_NO,
		"fragment %u, version %" PRIu64 ".%" PRIu64 ": %s",
		ev->fragment, ev->version.epoch, ev->version.number, fact);
}

static int event(struct dl_replay *v, const struct dl_tape_line *line,
	const struct dl_replay_watcher *w, struct dl_err *e)
{
	struct dl_sync_event ev = line->event;
	struct dl_sync_action a;
	int code = 0;

	if (w->counts && !w->counts(w->ctx, v->core, &ev))
		ev.norm = NAN;
	else if (w->event)
		code = w->event(w->ctx, line, e);
	if (code)
		return code;
	v->events++;
	dl_sync_event(v->core, &ev);
	while (dl_sync_next(v->core, &a)) {
		dl_trail_add(&v->trail, &a);
		if (w->action)
			w->action(w->ctx, &a);
	}
	return 0;
}

static int take(struct dl_replay *v, struct dl_tape_line *line,
	const struct dl_replay_watcher *w, const struct dl_tape_reader *r,
	struct dl_err *e)
{
	int code;

	v->line = r->line;
	if (line->kind == DL_TAPE_START)
		code = start(v, line, w, e);
	else
		code = check(v, line, w, e);
	if (!code && line->kind == DL_TAPE_EVENT)
		code = event(v, line, w, e);
	v->now = line->now;
	return code ? dl_at(e, "%s: line %" PRIu64, r->place, r->line) : 0;
}

int dl_replay(struct dl_replay *out, struct dl_tape_reader *r,
	const struct dl_replay_watcher *w, struct dl_err *e)
{
	struct dl_tape_line line = {0};
	int code = 0, end = 0;

	*out = (struct dl_replay){0};
	while (!code && !end) {
		end = dl_tape_next(r, &line, e);
		if (!end)
			code = take(out, &line, w, r, e);
	}
	dl_tape_line_release(&line);
	if (code || end != DL_NO)
		return code ? code : end;
	return out->core ? 0 : dl_fail(e, DL_DATA, "%s: empty", r->place);
}

void dl_replay_release(struct dl_replay *v)
{
	dl_sync_free(v->core);
	dl_sync_saved_release(&v->start.saved);
	*v = (struct dl_replay){0};
}
