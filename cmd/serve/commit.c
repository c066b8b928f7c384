#include "cmd/serve/commit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/server.h"
#include "link/errand.h"

static const int64_t pause_after = DL_SECOND;

struct commits {
	struct dl_errand errand;
	struct server *server;
	struct dl_errands *errands;
	struct dl_pool *pool; /* that writes; the merges' has other work */
	int busy;	      /* the errand is under way, with: */
	struct dl_store_write files;
	struct dl_sync_saved saved;
	struct dl_err why; /* code 0: they are written */
	/* merged and not committed, in order: the first is the errand's */
	uint32_t *queue;
	size_t n;
	unsigned char *queued; /* P flags */
	int64_t at;	       /* the next try; INT64_MAX: none has failed */
	int told;	       /* said that it fails */
};

int commits_begin(struct server *s, struct dl_err *e)
{
	struct commits *c = dl_alloc(sizeof *c);
	uint32_t fragments = s->layout->fragments;

	c->server = s;
	c->errands = dl_errands_new(&s->loop, e);
	if (!c->errands) {
		free(c);
		return e->code;
	}
	/* Values and momentum at once. */
	c->pool = dl_pool_new(s->options->sync.threads == 1 ? 1 : 2);
	c->queue = dl_alloc_array(fragments, sizeof *c->queue);
	c->queued = dl_alloc(fragments);
	c->at = INT64_MAX;
	s->commits = c;
	return 0;
}

void commits_end(struct commits *c)
{
	if (!c)
		return;
	dl_errands_free(c->errands);
	dl_pool_free(c->pool);
	free(c->queue);
	free(c->queued);
	free(c);
}

void commits_add(struct server *s, uint32_t p)
{
	struct commits *c = s->commits;

	c->queue[c->n++] = p;
	c->queued[p] = 1;
}

int commits_has(const struct server *s, uint32_t p)
{
	return s->commits->queued[p];
}

static void write_files(struct dl_errand *errand)
{
	struct commits *c = (void *)errand;

	dl_store_write(
		c->server->globals.store, c->pool, &c->files, &c->why);
}

static void fail(struct commits *c)
{
	if (!c->told)
		cmd_warn("%s: cannot commit, trying again", c->why.text);
	c->told = 1;
	c->at = dl_now() + pause_after;
}

/* It is committed: the core may decide at once to merge that fragment again. */
static void tell(struct commits *c)
{
	struct server *s = c->server;
	uint32_t p = c->queue[0];
	struct dl_sync_event ev = {.kind = DL_EV_MERGED,
		.now = dl_now(),
		.fragment = p,
		.version = dl_sync_version(s->core, p),
		.loss = NAN};

	c->n--;
	memmove(c->queue, c->queue + 1, c->n * sizeof *c->queue);
	c->queued[p] = 0;
	c->told = 0;
	c->at = INT64_MAX;
	ev.version.number++;
	server_event(s, &ev);
}

static void written(struct dl_errand *errand)
{
	struct commits *c = (void *)errand;
	struct server *s = c->server;

	c->busy = 0;
	if (!errand->dropped && !c->why.code) {
		/* What has led to a merge is on the tape before HEAD is: with
		 * all pushes that were recorded, also after a power cut. */
		server_save_tape(s, s->options->record != NULL);
		dl_store_write_end(s->globals.store, &c->files, 1, &c->saved,
			&c->why);
	}
	dl_sync_saved_release(&c->saved);
	if (errand->dropped)
		return;
	if (c->why.code)
		fail(c);
	else
		tell(c);
}

static void begin(struct commits *c)
{
	struct server *s = c->server;
	uint32_t p = c->queue[0];

	c->errand = (struct dl_errand){.run = write_files, .done = written};
	c->why = (struct dl_err){0};
	dl_sync_save(s->core, p, &c->saved);
	if (globals_commit_begin(
		    &s->globals, p, &c->files, &c->saved, &c->why)) {
		dl_sync_saved_release(&c->saved);
		fail(c);
		return;
	}
	c->busy = 1;
	dl_errands_add(c->errands, &c->errand);
}

void commits_work(struct server *s, int64_t now)
{
	struct commits *c = s->commits;

	if (!c->n || c->busy || (c->at != INT64_MAX && now < c->at))
		return;
	begin(c);
}

int64_t commits_wake(const struct server *s)
{
	const struct commits *c = s->commits;

	return c->n && !c->busy ? c->at : INT64_MAX;
}

void commits_finish(struct server *s)
{
	commits_work(s, INT64_MAX);
	dl_errands_wait(s->commits->errands);
}
