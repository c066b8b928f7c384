#include "cmd/learn/donated.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

static void drop_file(struct donated *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	free(d->path);
	d->path = NULL;
	dl_scratch_remove(&d->scratch);
}

static int create(void *ctx, uint64_t bytes, struct dl_err *e)
{
	struct learner *l = ctx;
	struct donated *d = &l->donated;

	drop_file(d);
	if (dl_scratch_open(&d->scratch, l->options->scratch, bytes, e))
		return -1;
	d->path = dl_scratch_file(&d->scratch, "state.safetensors");
	d->fd = open(d->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (d->fd < 0)
		dl_fail_sys(e, DL_CANTCREAT, "%s", d->path);
	return d->fd;
}

int donated_begin(struct learner *l, struct dl_err *e)
{
	struct newcomer_config c = {.loop = &l->loop,
		.syncer = &l->options->address,
		.insecure = l->options->insecure,
		.wait = 1,
		.key = l->options->own,
		.run = "",
		.name = l->name,
		.create = create,
		.ctx = l};

	if (!l->options->join)
		return 0;
	l->donated.newcomer = dl_alloc(sizeof *l->donated.newcomer);
	return newcomer_begin(l->donated.newcomer, &c, e);
}

static void end_newcomer(struct donated *d)
{
	if (d->newcomer)
		newcomer_release(d->newcomer);
	free(d->newcomer);
	d->newcomer = NULL;
}

/* Notes what has come. */
static void keep(struct donated *d)
{
	const struct newcomer *n = d->newcomer;

	strcpy(d->run, n->run);
	strcpy(d->layout, n->layout.hash);
	d->clock = n->intake.clock;
	d->fragments = n->layout.fragments;
	d->versions = dl_alloc_array(d->fragments, sizeof *d->versions);
	memcpy(d->versions, n->intake.version,
		d->fragments * sizeof *d->versions);
	cmd_note("has the state of %s: clock %llu", n->from,
		(unsigned long long)d->clock);
}

int donated_work(struct learner *l, int64_t now)
{
	struct donated *d = &l->donated;
	struct dl_err why = {0};

	if (!d->newcomer)
		return 0;
	newcomer_work(d->newcomer, now);
	switch (d->newcomer->result) {
	case NEWCOMER_BUSY:
		return 1;
	case NEWCOMER_STATE:
		keep(d);
		break;
	case NEWCOMER_NOTHING:
		drop_file(d);
		why = d->newcomer->why;
		if (d->newcomer->donors.donors)
			cmd_warn("no peer's state was to be had: begins with "
				 "the syncer's values");
		break;
	}
	end_newcomer(d);
	/* A syncer that does not let us in would say so once more. */
	if (why.code == DL_NOPERM || why.code == DL_DATA)
		learner_fail(l, &why);
	return 0;
}

int64_t donated_wake(const struct learner *l)
{
	return newcomer_wake(l->donated.newcomer);
}

void donated_hello(const struct learner *l, struct dl_message *hello)
{
	const struct donated *d = &l->donated;

	if (!d->versions)
		return;
	hello->run = d->run;
	hello->layout = d->layout;
	hello->clock = d->clock;
	hello->fragments = d->fragments;
	hello->versions = d->versions;
}

int donated_use(struct learner *l, struct dl_err *e)
{
	struct donated *d = &l->donated;
	struct dl_learn_event ev = {.kind = DL_LE_STATE,
		.now = dl_now(),
		.clock = d->clock,
		.versions = d->versions};

	if (!d->versions)
		return 0;
	if (strcmp(d->layout, l->layout.hash) != 0)
		return dl_fail(e, DL_PROTOCOL, "now has another layout");
	if (weights_read_model(&l->weights, d->path, e))
		return e->code;
	learner_event(l, &ev);
	return 0;
}

void donated_release(struct learner *l)
{
	struct donated *d = &l->donated;

	end_newcomer(d);
	drop_file(d);
	free(d->versions);
	d->versions = NULL;
}
