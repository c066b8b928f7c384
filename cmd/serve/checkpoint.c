#include "cmd/serve/checkpoint.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/keep.h"
#include "cmd/serve/server.h"
#include "link/errand.h"
#include "state/checkpoint.h"

struct checkpoints {
	struct dl_errand errand;
	struct server *server;
	struct dl_errands *errands;
	int busy; /* the errand is under way, with: */
	struct dl_pin *pin;
	int64_t made;
	char *path;
	struct dl_err why;  /* code 0: it is written */
	struct dl_err stay; /* likewise of those that were to be removed */
	/* the next */
	int64_t at;	/* INT64_MAX: by the clock */
	uint64_t clock; /* UINT64_MAX: by time */
	int last;	/* at once */
	int over;	/* and it was begun, or nobody waits for it */
};

/* When the next one is due, of one that begins now. */
static void plan_next(struct checkpoints *c, int64_t now)
{
	const struct checkpoint_options *o = &c->server->options->checkpoint;

	c->at = o->every_ns ? now + o->every_ns : INT64_MAX;
	c->clock = o->every_steps
			   ? dl_sync_clock(c->server->core) + o->every_steps
			   : UINT64_MAX;
}

int checkpoints_begin(struct server *s, struct dl_err *e)
{
	struct checkpoints *c;

	if (!s->options->checkpoint.folder)
		return 0;
	c = dl_alloc(sizeof *c);
	c->server = s;
	c->errands = dl_errands_new(&s->loop, e);
	if (!c->errands) {
		free(c);
		return e->code;
	}
	keep_clean(s->options->checkpoint.folder, s->run->name);
	plan_next(c, dl_now());
	s->checkpoints = c;
	return 0;
}

void checkpoints_end(struct checkpoints *c)
{
	if (!c)
		return;
	dl_errands_free(c->errands);
	free(c);
}

static void pack(struct dl_errand *errand)
{
	struct checkpoints *c = (void *)errand;
	const struct checkpoint_options *o = &c->server->options->checkpoint;
	const struct dl_sync_saved *saved = dl_pin_saved(c->pin);

	if (!dl_checkpoint_write(c->pin, c->made, c->path, &c->why))
		keep_newest(o->folder, dl_pin_run(c->pin)->name, saved->epoch,
			saved->clock, o->keep, &c->stay);
}

static void packed(struct dl_errand *errand)
{
	struct checkpoints *c = (void *)errand;

	dl_store_unpin(c->server->globals.store, c->pin);
	if (errand->dropped)
		cmd_debug("%s: not told of", c->path);
	else if (c->why.code == DL_TEMPFAIL && !c->over)
		cmd_debug("%s: given up, there is a later one", c->path);
	else if (c->why.code == DL_TEMPFAIL)
		cmd_note("%s: given up", c->path);
	else if (c->why.code)
		cmd_warn("%s: no checkpoint this time", c->why.text);
	else
		cmd_note("%s: a checkpoint", c->path);
	if (c->stay.code)
		cmd_warn("%s: an old checkpoint stays", c->stay.text);
	free(c->path);
	c->busy = 0;
}

static void begin(struct checkpoints *c, int64_t now)
{
	struct server *s = c->server;
	const struct dl_sync_saved *saved;

	plan_next(c, now);
	c->errand = (struct dl_errand){.run = pack, .done = packed};
	c->pin = dl_store_pin(s->globals.store);
	saved = dl_pin_saved(c->pin);
	c->made = dl_wall();
	c->path = keep_name(s->options->checkpoint.folder, s->run->name,
		saved->epoch, saved->clock);
	c->why = c->stay = (struct dl_err){0};
	c->busy = 1;
	c->over = c->last;
	dl_errands_add(c->errands, &c->errand);
}

static int is_due(const struct checkpoints *c, int64_t now)
{
	return c->last || now >= c->at ||
	       dl_sync_clock(c->server->core) >= c->clock;
}

void checkpoints_work(struct server *s, int64_t now)
{
	struct checkpoints *c = s->checkpoints;

	if (c && !c->busy && !c->over && is_due(c, now))
		begin(c, now);
}

/* While one is made its end wakes the loop. */
int64_t checkpoints_wake(const struct server *s)
{
	const struct checkpoints *c = s->checkpoints;

	return c && !c->busy && !c->over ? c->at : INT64_MAX;
}

void checkpoints_last(struct server *s)
{
	struct checkpoints *c = s->checkpoints;

	if (!c)
		return;
	/* That would have it wait for two, and the last has all of this. */
	if (c->busy && !c->over)
		dl_checkpoint_abandon(c->pin);
	c->last = 1;
}

void checkpoints_give_up(struct server *s)
{
	struct checkpoints *c = s->checkpoints;

	if (!c)
		return;
	if (c->busy)
		dl_checkpoint_abandon(c->pin);
	c->over = 1;
}

int checkpoints_busy(const struct server *s)
{
	const struct checkpoints *c = s->checkpoints;

	return c && (c->busy || (c->last && !c->over));
}
