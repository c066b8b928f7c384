#include "cmd/serve/commit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/hashing.h"
#include "cmd/serve/server.h"
#include "link/errand.h"

static const int64_t pause_after = DL_SECOND;

struct commits {
	struct dl_errand errand;
	struct server *server;
	struct dl_errands *errands;
	struct dl_pool *pool; /* that writes; the merges' has other work */
	int busy;	      /* the errand is under way, with: */
	struct held *held;    /* n of P */
	size_t n;
	struct dl_sync_saved saved;
	struct dl_err why; /* code 0: they are written */
	/* merged, and the core has not heard of it, in order */
	uint32_t *queue;
	size_t queued;
	unsigned char *waits; /* P flags: it is in the queue */
	/* told of, and not committed */
	unsigned char *loose; /* P flags */
	uint64_t merges;
	struct dl_sync_saved latest; /* when the core heard of the last */
	int finish;		     /* even if they are few */
	int64_t at; /* the next try; INT64_MAX: none has failed */
	int said;   /* that it fails */
	int telling;
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
	/* Two files are hashed while a disk has both to write. */
	c->pool = dl_pool_new(s->options->sync.threads == 1 ? 1 : 4);
	c->held = dl_alloc_array(fragments, sizeof *c->held);
	c->queue = dl_alloc_array(fragments, sizeof *c->queue);
	c->waits = dl_alloc(fragments);
	c->loose = dl_alloc(fragments);
	c->at = INT64_MAX;
	s->commits = c;
	return 0;
}

void commits_add(struct server *s, uint32_t p)
{
	struct commits *c = s->commits;

	c->queue[c->queued++] = p;
	c->waits[p] = 1;
}

int commits_has(const struct server *s, uint32_t p)
{
	return s->commits->waits[p];
}

/* Of the first merge that waits. The core may decide at once to merge that
 * fragment again. */
static void tell(struct commits *c)
{
	struct server *s = c->server;
	uint32_t p = c->queue[0];
	struct dl_sync_event ev = {.kind = DL_EV_MERGED,
		.now = dl_now(),
		.fragment = p,
		.version = dl_sync_version(s->core, p),
		.loss = NAN};

	c->queued--;
	memmove(c->queue, c->queue + 1, c->queued * sizeof *c->queue);
	c->waits[p] = 0;
	ev.version.number++;
	server_event(s, &ev);
}

static int is_strict(const struct commits *c)
{
	return c->server->options->commit == 1;
}

/* HEAD is of the moment at which the core hears of a merge: the first that
 * waits. */
static void save(struct commits *c, struct dl_sync_saved *saved)
{
	dl_sync_saved_release(saved);
	dl_sync_save(c->server->core, c->queue[0], saved);
}

static void tell_all(struct commits *c)
{
	if (c->telling)
		return;
	c->telling = 1;
	while (c->queued) {
		c->loose[c->queue[0]] = 1;
		c->merges++;
		save(c, &c->latest);
		tell(c);
	}
	c->telling = 0;
}

static void write_files(struct dl_errand *errand)
{
	struct commits *c = (void *)errand;
	const struct dl_store *store = c->server->globals.store;

	for (size_t i = 0; !c->why.code && i < c->n; i++)
		dl_store_write(store, c->pool, &c->held[i].files, &c->why);
}

static void name_files(struct commits *c, struct dl_store_write *files)
{
	struct server *s = c->server;

	if (is_strict(c))
		save(c, &c->saved);
	/* What has led to a merge is on the tape before HEAD is: with all
	 * pushes that were recorded, also after a power cut. */
	server_save_tape(s, s->options->record != NULL);
	dl_store_write_end(s->globals.store, files, c->n, &c->saved, &c->why);
}

/* What cannot be committed takes no room from the next try. */
static void name_or_remove(struct commits *c, struct dl_store_write *files)
{
	for (size_t i = 0; i < c->n; i++)
		files[i] = c->held[i].files;
	if (!c->why.code)
		name_files(c, files);
	if (c->why.code)
		dl_store_write_undo(c->server->globals.store, files, c->n);
}

static void let_go(struct commits *c)
{
	for (size_t i = 0; i < c->n; i++)
		globals_let_go(&c->server->globals, &c->held[i]);
	dl_sync_saved_release(&c->saved);
}

/* All of it is still to be committed. */
static void fail(struct commits *c)
{
	if (!c->said)
		cmd_warn("%s: cannot commit, trying again", c->why.text);
	c->said = 1;
	c->at = dl_now() + pause_after;
	for (size_t i = 0; !is_strict(c) && i < c->n; i++) {
		c->loose[c->held[i].files.p] = 1;
		c->merges = c->server->options->commit;
	}
}

static void committed(struct commits *c)
{
	c->said = 0;
	c->at = INT64_MAX;
	if (is_strict(c))
		tell(c);
	else
		commits_work(c->server, dl_now());
}

static void written(struct dl_errand *errand)
{
	struct commits *c = (void *)errand;
	struct dl_store_write *files;
	size_t n = c->n;

	c->busy = 0;
	if (errand->dropped) {
		let_go(c);
		return;
	}
	files = dl_alloc_array(n, sizeof *files);
	name_or_remove(c, files);
	let_go(c);
	if (c->why.code) {
		fail(c);
	} else {
		committed(c);
		dl_store_write_tidy(c->server->globals.store, files, n);
		for (size_t i = 0; i < n; i++)
			hashing_add(c->server, files[i].p);
	}
	free(files);
}

static void hold(struct commits *c, uint32_t p)
{
	struct held *h = &c->held[c->n++];

	globals_hold(&c->server->globals, p, h);
	/* Who records is to find on the tape what a replay comes to. */
	h->files.content.unhashed = !c->server->options->record;
	if (!c->why.code)
		dl_store_write_begin(c->server->globals.store, &h->files,
			&c->saved, &c->why);
}

/* The next merge that waits; or else all that were told of. */
static void begin(struct commits *c)
{
	struct server *s = c->server;

	c->errand = (struct dl_errand){.run = write_files, .done = written};
	c->why = (struct dl_err){0};
	c->n = 0;
	if (is_strict(c)) {
		save(c, &c->saved);
		hold(c, c->queue[0]);
	} else {
		dl_sync_saved_copy(&c->latest, &c->saved);
	}
	for (uint32_t p = 0; p < s->layout->fragments; p++)
		if (c->loose[p])
			hold(c, p);
	memset(c->loose, 0, s->layout->fragments);
	c->merges = 0;
	if (c->why.code) {
		let_go(c);
		fail(c);
		return;
	}
	c->busy = 1;
	dl_errands_add(c->errands, &c->errand);
}

static int is_due(const struct commits *c)
{
	if (is_strict(c))
		return c->queued > 0;
	return c->merges >= (c->finish ? 1 : c->server->options->commit);
}

void commits_work(struct server *s, int64_t now)
{
	struct commits *c = s->commits;

	if (!is_strict(c))
		tell_all(c);
	if (c->busy || !is_due(c) || (c->at != INT64_MAX && now < c->at))
		return;
	/* Values are newer than what was told of, within what tells. */
	if (!is_strict(c) && c->queued)
		return;
	begin(c);
}

int64_t commits_wake(const struct server *s)
{
	const struct commits *c = s->commits;

	return !c->busy && is_due(c) ? c->at : INT64_MAX;
}

void commits_finish(struct server *s)
{
	struct commits *c = s->commits;

	c->finish = 1;
	commits_work(s, INT64_MAX);
	dl_errands_wait(c->errands);
	c->finish = 0;
}

/* Learners were told of merges that are in no commit. */
static void try_again(struct commits *c)
{
	struct server *s = c->server;

	commits_finish(s);
	if (!c->merges)
		return;
	cmd_warn("%s: the merges since the last commit are lost", c->why.text);
	if (!s->code)
		s->code = c->why.code;
}

void commits_end(struct server *s)
{
	struct commits *c = s->commits;

	if (!c)
		return;
	if (!is_strict(c))
		try_again(c);
	dl_errands_free(c->errands);
	dl_pool_free(c->pool);
	dl_sync_saved_release(&c->latest);
	free(c->held);
	free(c->queue);
	free(c->waits);
	free(c->loose);
	free(c);
}
