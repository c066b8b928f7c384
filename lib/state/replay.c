#include "state/replay.h"

#include <string.h>

static void start(struct dl_replay *v, struct dl_tape_line *line,
	const struct dl_replay_watcher *w)
{
	dl_replay_release(v);
	/* The line is reused, and what it owns moves. */
	v->start = line->start;
	memset(&line->start.saved, 0, sizeof line->start.saved);
	v->core = v->start.restored
			  ? dl_sync_restore(&v->start.config, &v->start.saved)
			  : dl_sync_new(&v->start.config);
	if (w->start)
		w->start(w->ctx, &v->start);
}

static void event(struct dl_replay *v, const struct dl_sync_event *ev,
	const struct dl_replay_watcher *w)
{
	struct dl_sync_action a;

	if (w->counts && !w->counts(w->ctx, v->core, ev))
		return;
	if (w->event)
		w->event(w->ctx, ev);
	v->events++;
	dl_sync_event(v->core, ev);
	while (dl_sync_next(v->core, &a))
		if (w->action)
			w->action(w->ctx, &a);
}

int dl_replay(struct dl_replay *out, struct dl_tape_reader *r,
	const struct dl_replay_watcher *w, struct dl_err *e)
{
	struct dl_tape_line line = {0};
	int code;

	*out = (struct dl_replay){0};
	while (!(code = dl_tape_next(r, &line, e))) {
		if (line.kind == DL_TAPE_START)
			start(out, &line, w);
		else
			event(out, &line.event, w);
		out->now = line.now;
	}
	dl_tape_line_release(&line);
	if (code != DL_NO)
		return code;
	return out->core ? 0 : dl_fail(e, DL_DATA, "%s: empty", r->place);
}

void dl_replay_release(struct dl_replay *v)
{
	dl_sync_free(v->core);
	dl_sync_saved_release(&v->start.saved);
	*v = (struct dl_replay){0};
}
