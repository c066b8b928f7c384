/* Links: what travels, how long it takes, and what a liar makes of it. */
#include "sim/world.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

enum { LIES = 8 };

/* A push that must be refused. */
static void lie_push(struct world *w, struct dl_sync_event *ev)
{
	const uint64_t much = UINT64_C(1) << 40;

	switch (dl_rng_below(&w->rng, LIES)) {
	case 0:
		ev->norm = NAN;
		break;
	case 1:
		ev->norm = INFINITY;
		break;
	case 2:
		ev->steps = 0;
		break;
	case 3:
		ev->tokens = 0;
		break;
	case 4:
		ev->base = (struct dl_version){1, much};
		break;
	case 5:
		ev->step = much;
		break;
	case 6:
		ev->steps = much;
		break;
	default:
		ev->tokens = UINT64_MAX;
		break;
	}
}

/* A report that must be refused. */
static void lie_step(struct world *w, struct dl_sync_event *ev)
{
	if (chance(w, 0.5) || !ev->steps)
		ev->clock += UINT64_C(1) << 40;
	else
		ev->steps = ev->tokens = 0;
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

void send_up(struct world *w, uint32_t m, uint32_t s,
	const struct dl_sync_event *ev, size_t record)
{
	struct node *n = &w->node[m];
	struct link *k = &n->link[s];
	struct site *site = &w->site[n->config->site];
	int64_t after = n->config->delay_ns;
	struct event *e;

	if (!k->up)
		return;
	if (ev->kind == DL_EV_PUSH) {
		site->up_free =
			later(site->up_free, w->now) + n->config->push_ns;
		after += site->up_free - w->now;
	}
	e = post_message(w, after, TO_SYNCER);
	e->m = m;
	e->s = s;
	e->gen = k->gen;
	e->record = record;
	e->sync = *ev;
	e->sync.learner = n->name;
	e->sync.instance = n->instance;
	if (ev->kind == DL_EV_PUSH)
		dl_ledger_hold(&w->ledger, record);
	e->lie = n->config->liar && chance(w, 0.3);
	if (!e->lie)
		return;
	if (ev->kind == DL_EV_PUSH)
		lie_push(w, &e->sync);
	else if (ev->kind == DL_EV_STEP)
		lie_step(w, &e->sync);
}

static struct event *post_down(
	struct world *w, uint32_t m, uint32_t s, int64_t after)
{
	struct event *e = post_message(
		w, after + w->node[m].config->delay_ns, TO_LEARNER);

	e->m = m;
	e->s = s;
	e->gen = w->node[m].link[s].gen;
	return e;
}

/* It has its turn on the link, or takes the place of one that still waits for
 * its own. */
static struct event *post_global(
	struct world *w, uint32_t m, uint32_t s, uint32_t p)
{
	const struct dl_fleet_learner *config = w->node[m].config;
	struct site *site = &w->site[config->site];
	struct waiting *x = &w->node[m].link[s].waiting[p];

	if (x->event && w->now < x->begins)
		return x->event;
	x->sent++;
	x->begins = later(site->down_free, w->now);
	site->down_free = x->begins + config->global_ns;
	x->event = post_down(w, m, s, site->down_free - w->now);
	return x->event;
}

struct event *send_down(struct world *w, uint32_t m, uint32_t s,
	const struct dl_learn_event *ev)
{
	struct event *e;

	if (!w->node[m].link[s].up)
		return NULL;
	if (ev->kind == DL_LE_GLOBAL)
		e = post_global(w, m, s, ev->fragment);
	else
		e = post_down(w, m, s, 0);
	e->learn = *ev;
	e->learn.syncer = s;
	return e;
}

static void post_about(struct world *w, int64_t after, enum what what,
	uint32_t m, uint32_t s, uint64_t gen)
{
	struct event *e = post(w, after, what);

	e->m = m;
	e->s = s;
	e->gen = gen;
	e->sync.instance = w->node[m].instance;
}

/* Says hello with what the learner has done and holds. */
static void say_hello(struct world *w, uint32_t m, uint32_t s)
{
	struct node *n = &w->node[m];
	struct dl_learn_info info;
	struct event *e;

	dl_learn_info(n->core, &info);
	e = post(w, n->config->delay_ns, TO_SYNCER);
	e->m = m;
	e->s = s;
	e->gen = n->link[s].gen;
	e->versions = dl_alloc_array(w->fragments, sizeof *e->versions);
	for (uint32_t p = 0; p < w->fragments; p++)
		e->versions[p] = dl_learn_version(n->core, p);
	e->sync = (struct dl_sync_event){
		.kind = DL_EV_JOIN,
		.learner = n->name,
		.instance = n->instance,
		.clock = dl_learn_clock_at(n->core, s),
		.steps = info.steps,
		.tokens = info.tokens,
		.versions = e->versions,
	};
}

void connect_link(struct world *w, uint32_t m, uint32_t s)
{
	struct node *n = &w->node[m];
	struct link *k = &n->link[s];
	struct event *e;

	if (w->hub[s].over || k->up || n->finished)
		return;
	if (!w->hub[s].core) {
		/* Never at once: time would stand still until it is back. */
		post_about(w, later(w->config->detect_ns, DL_SECOND / 1000),
			CONNECT, m, s, n->gen);
		return;
	}
	k->up = 1;
	k->gen = ++w->gens;
	memset(k->waiting, 0, w->fragments * sizeof *k->waiting);
	say_hello(w, m, s);
	e = post_random(w, w->config->cut_ns, CUT);
	if (e) {
		e->m = m;
		e->s = s;
		e->gen = k->gen;
	}
}

/* The link is gone; the syncer notices after a while, if it lives. */
void close_link(struct world *w, uint32_t m, uint32_t s)
{
	struct link *k = &w->node[m].link[s];

	if (!k->up)
		return;
	k->up = 0;
	k->gen = ++w->gens;
	post_about(w, w->config->detect_ns, LEAVE, m, s, k->gen);
}

/* ... and so does the learner, and comes back. */
void cut_link(struct world *w, uint32_t m, uint32_t s)
{
	struct node *n = &w->node[m];

	if (!n->link[s].up)
		return;
	close_link(w, m, s);
	post_about(w, w->config->detect_ns, LOST, m, s, n->link[s].gen);
	post_about(w, w->config->detect_ns + draw(w, w->config->cut_for_ns),
		CONNECT, m, s, n->gen);
}
