#include <stdio.h>
#include <stdlib.h>

#include "base/output.h"
#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "cmd/merge/momentum.h"
#include "cmd/merge/output.h"
#include "cmd/merge/round.h"

/* All that is read and written, a fragment at a time. */
struct merge {
	const struct merge_options *options;
	struct base base;
	struct deltas deltas;
	struct momentum momentum;
	struct round round;
	struct dl_output values, update, state;
	uint32_t alone; /* fragments without a delta */
};

/* The step of fragment p, whose update is there. */
static int step(struct merge *m, uint32_t p, struct dl_err *e)
{
	struct round *r = &m->round;

	if (base_read(&m->base, p, r->theta, e) ||
		momentum_read(&m->momentum, &m->base, p, r->momentum, e))
		return e->code;
	if (round_step(r, p, e))
		return e->code;
	if (m->options->state && momentum_write(&m->momentum, &m->base, p,
					 r->momentum, &m->state, e))
		return e->code;
	return output_values(&m->base, p, r->theta, &m->values, e);
}

/* Fragment p stays as it is. */
static int pass(struct merge *m, uint32_t p, struct dl_err *e)
{
	return m->options->values
		       ? output_values(&m->base, p, NULL, &m->values, e)
		       : 0;
}

static int merge_fragment(struct merge *m, uint32_t p, struct dl_err *e)
{
	const struct merge_options *o = m->options;
	const struct delta *first;
	size_t n = deltas_of(&m->deltas, p, &first);
	int rc = n ? round_merge(&m->round, p, first, n, e) : DL_NO;

	if (rc == DL_NO) {
		if (n)
			cmd_note("fragment %u stays as it is: %s",
				m->base.fragment[p].number, e->text);
		m->alone += !n;
		return pass(m, p, e);
	}
	if (!rc && o->update)
		rc = output_packed(
			&m->base, p, "delta", m->round.update, &m->update, e);
	return rc || !o->values ? rc : step(m, p, e);
}

static int merge_fragments(struct merge *m, struct dl_err *e)
{
	int rc = 0;

	if (cmd_verbosity > 0)
		fputs("# fragment\tlearner\tweight\tnorm\tcosine\n", stderr);
	for (uint32_t p = 0; !rc && p < m->base.layout.fragments; p++)
		if (m->base.fragment[p].held)
			rc = merge_fragment(m, p, e);
	if (!rc && m->options->values && !m->base.whole && m->base.local)
		rc = output_local(&m->base, &m->values, e);
	if (!rc && m->options->state)
		rc = momentum_keep(&m->momentum, &m->state, e);
	return rc;
}

/* A name that nobody has was meant for somebody. */
static int check_weights(const struct merge *m, struct dl_err *e)
{
	const struct merge_options *o = m->options;

	for (size_t i = 0; i < o->weights; i++)
		if (!deltas_by(&m->deltas, o->weight[i].name))
			return dl_fail(e, DL_DATA, "-w %s: has no delta",
				o->weight[i].name);
	return 0;
}

static int open_output(
	struct dl_output *o, const char *path, int zstd, struct dl_err *e)
{
	int rc = path ? dl_output_open(o, path, e) : 0;

	dl_output_compress(o, zstd);
	return rc;
}

/* No output shows before all are on the disk. The state is replaced last: what
 * it was belongs to the base, and if that is still there the same merge can be
 * made again. */
static int write_all(struct merge *m, struct dl_err *e)
{
	struct dl_output *const all[] = {&m->update, &m->values, &m->state};
	const struct merge_options *o = m->options;
	int rc = open_output(&m->values, o->values, o->zstd, e);

	if (!rc)
		rc = open_output(&m->update, o->update, o->zstd, e);
	if (!rc)
		rc = open_output(&m->state, o->state, 0, e);
	if (!rc)
		rc = merge_fragments(m, e);
	for (size_t i = 0; !rc && i < 3; i++)
		rc = dl_output_finish(all[i], e);
	if (!rc && o->update)
		rc = dl_output_commit(&m->update, e);
	if (!rc && o->values)
		rc = dl_output_commit(&m->values, e);
	if (!rc && o->state)
		rc = dl_output_commit(&m->state, e);
	dl_output_abort(&m->values);
	dl_output_abort(&m->update);
	dl_output_abort(&m->state);
	return rc;
}

static int run(struct merge *m, struct dl_err *e)
{
	const struct merge_options *o = m->options;
	int rc = base_open(&m->base, o->base, o->layout, e);

	if (!rc)
		rc = deltas_open(&m->deltas, &m->base, o, e);
	if (!rc)
		rc = check_weights(m, e);
	if (!rc && o->state)
		rc = momentum_open(&m->momentum, o->state, &m->base, e);
	if (rc)
		return rc;
	round_init(&m->round, &m->base, &m->deltas, o);
	rc = write_all(m, e);
	round_release(&m->round);
	if (m->alone)
		cmd_note("%u of %u fragments have no delta and stay as they "
			 "are",
			m->alone, m->base.layout.fragments);
	return rc;
}

int sync_merge(int argc, char **argv)
{
	struct merge_options o;
	struct merge m = {.options = &o,
		.momentum = MOMENTUM_INIT,
		.values = DL_OUTPUT_INIT,
		.update = DL_OUTPUT_INIT,
		.state = DL_OUTPUT_INIT};
	struct dl_err e;
	int rc;

	dl_output_on_signal();
	merge_options_read(&o, argc, argv);
	rc = run(&m, &e);
	momentum_close(&m.momentum);
	deltas_close(&m.deltas);
	base_close(&m.base);
	merge_options_release(&o);
	return rc ? cmd_fail(&e) : 0;
}
