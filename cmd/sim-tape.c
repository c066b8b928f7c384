#include "cmd/sim-tape.h"

#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "state/tape.h"

/* Virtual time begins with this century, so that one run has one tape. */
static const int64_t began = 946684800 * DL_SECOND;

static void on_start(void *ctx, const struct dl_sync_config *c,
	const struct dl_sync_saved *saved, int64_t now)
{
	struct dl_tape_start start = {.run = "fleet", .config = *c};
	struct sim_tape *t = ctx;

	memset(start.layout, '0', sizeof start.layout - 1);
	if (saved) {
		start.restored = 1;
		start.saved = *saved;
	}
	dl_tape_write_start(&t->text, &start, began + now, now);
}

static void on_event(void *ctx, const struct dl_sync_event *ev)
{
	struct sim_tape *t = ctx;

	dl_tape_write_event(&t->text, ev, NULL, t->fragments, began + ev->now);
}

void sim_tape_begin(struct sim_tape *t, struct dl_fleet_config *c)
{
	*t = (struct sim_tape){.fragments = c->sync.schedule.fragments};
	c->started = on_start;
	c->heard = on_event;
	c->ctx = t;
}

int sim_tape_end(struct sim_tape *t, const char *path, struct dl_err *e)
{
	int code = dl_write_file(path, t->text.data, t->text.len, e);

	dl_buf_free(&t->text);
	return code;
}
