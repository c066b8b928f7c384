#include "cmd/learn/spool.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "link/spool_values.h"

/* Looks after which a run that is done is believed to keep its values. */
enum { HOPELESS = 10 };

/* Getting the values of one version. */
struct get {
	struct dl_errand errand;
	struct spool_link *link;
	const char *folder;
	const struct dl_layout *layout;
	uint32_t p;
	struct dl_spool_global what;
	int final;
	float *values; /* of the shelf */
	int by_update; /* what is here is its base; then it was of use */
	struct dl_buf codes;
	struct dl_coded update; /* over codes */
	uint64_t bytes;		/* of the file that was used */
	int code;
	struct dl_err err;
};

/* The update, where it is of use; else the values. */
static void get_run(struct dl_errand *errand)
{
	struct get *g = (struct get *)errand;
	int spool;

	g->code = dl_spool_open(g->folder, &spool, &g->err);
	if (g->code)
		return;
	if (g->by_update)
		g->by_update = !dl_spool_read_update(spool, g->layout, g->p,
			&g->what, &g->codes, &g->update, &g->err);
	if (!g->by_update)
		g->code = dl_spool_read_values(
			spool, g->layout, g->p, &g->what, g->values, &g->err);
	g->bytes = g->by_update ? g->what.update_bytes : g->what.bytes;
	close(spool);
}

static void hand_over(struct get *g)
{
	struct spool_link *s = g->link;
	struct learner *l = s->learner;
	struct dl_learn_event ev = {.kind = DL_LE_GLOBAL,
		.now = dl_now(),
		.fragment = g->p,
		.version = g->what.version,
		.step = g->what.step,
		.final = g->final};

	s->gets_failed = 0;
	s->fragment[g->p].got = g->what.version;
	s->fragment[g->p].final = g->final;
	l->uplink.bytes_in += g->bytes;
	if (g->by_update) {
		weights_add_update(
			&l->weights, g->p, g->what.version, &g->update);
	} else {
		weights_came(&l->weights, g->p, g->what.version, g->values);
		g->values = NULL;
	}
	learner_event(l, &ev);
}

/* A run that is done publishes nothing any more: what cannot be had now will
 * never be. */
static void do_without(struct spool_link *s)
{
	struct dl_learn_event ev = {.kind = DL_LE_BYE, .now = dl_now()};

	if (s->latest.state != DL_SPOOL_DONE || ++s->gets_failed < HOPELESS)
		return;
	cmd_warn("the run is done and its last values are not to be had");
	learner_event(s->learner, &ev);
}

static void get_done(struct dl_errand *errand)
{
	struct get *g = (struct get *)errand;
	struct spool_link *s = g->link;
	int dropped = errand->dropped;

	s->getting = 0;
	if (!dropped && !g->code) {
		hand_over(g);
	} else if (!dropped) {
		cmd_debug("%s: trying again", g->err.text);
		do_without(s);
	}
	shelf_give(&s->learner->weights.shelf, g->p, g->values);
	dl_coded_release(&g->update);
	dl_buf_free(&g->codes);
	free(g);
	if (!dropped)
		spool_get(s);
}

/* Does the core lack what latest has of p? The final word it needs whatever it
 * has. */
static int is_wanted(const struct spool_link *s, uint32_t p)
{
	const struct spool_fragment *f = &s->fragment[p];

	if (f->tried)
		return 0;
	return dl_version_cmp(s->latest.fragment[p].version, f->got) > 0 ||
	       (s->latest.state >= DL_SPOOL_FINAL && !f->final);
}

/* Its update starts from what is here. The last values come whole. */
static int is_updated(const struct spool_link *s,
	const struct dl_spool_global *what, uint32_t p)
{
	return what->base.epoch && s->latest.state < DL_SPOOL_FINAL &&
	       weights_judge_update(&s->learner->weights, p, what->base,
		       what->version) == UPDATE_ADD;
}

/* One at a time: each takes memory. */
void spool_get(struct spool_link *s)
{
	struct learner *l = s->learner;
	struct get *g;
	uint32_t p = 0;

	while (p < s->latest.fragments && !is_wanted(s, p))
		p++;
	if (p == s->latest.fragments || s->getting || l->finishing)
		return;
	s->getting = s->fragment[p].tried = 1;
	g = dl_alloc(sizeof *g);
	*g = (struct get){.errand = {.run = get_run, .done = get_done},
		.link = s,
		.folder = l->options->address.folder,
		.layout = &l->layout,
		.p = p,
		.what = s->latest.fragment[p],
		.final = s->latest.state >= DL_SPOOL_FINAL,
		.by_update = is_updated(s, &s->latest.fragment[p], p),
		.values = shelf_take(&l->weights.shelf, p)};
	dl_errands_add(s->errands, &g->errand);
}
