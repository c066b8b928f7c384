/* The run: virtual time, what breaks when, and the books at the end. */
#include "sim/fleet.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "sim/world.h"

/* Events from now at which look_ahead wants what it names. */
enum { AHEAD_EVENT = 16, AHEAD_NODE = 10, AHEAD_CORE = 5 };
enum { CACHE_LINE = 64, CORE_BYTES = 256 };

void dl_fleet_config_default(struct dl_fleet_config *c, uint32_t fragments)
{
	*c = (struct dl_fleet_config){
		.apply = DL_APPLY_OVERWRITE,
		.alpha = 0.5,
		.syncers = 1,
		.merge_ns = DL_SECOND / 100,
		.down_ns = 10 * DL_SECOND,
		.cut_for_ns = 5 * DL_SECOND,
		.load_ns = DL_SECOND,
		.restart_ns = 5 * DL_SECOND,
		.detect_ns = DL_SECOND,
		.calm_end = 1,
	};
	dl_sync_config_default(&c->sync, fragments);
}

static struct event *make_event(struct world *w, enum what what)
{
	struct event *e = w->free;

	if (e) {
		w->free = e->next;
		__builtin_prefetch(w->free);
	} else {
		e = dl_alloc(sizeof *e);
	}
	memset(e, 0, offsetof(struct event, sync));
	e->what = what;
	return e;
}

struct event *post(struct world *w, int64_t after, enum what what)
{
	struct event *e = make_event(w, what);

	dl_queue_put(&w->queue, w->now + after, e);
	return e;
}

struct event *post_message(struct world *w, int64_t after, enum what what)
{
	struct event *e = make_event(w, what);

	dl_queue_put_after(&w->queue, w->now, after, e);
	return e;
}

int chance(struct world *w, double p)
{
	return p > 0 && dl_rng_uniform(&w->rng) < p;
}

int64_t draw(struct world *w, int64_t mean)
{
	return 1 + (int64_t)((double)mean * dl_rng_exponential(&w->rng));
}

struct event *post_random(struct world *w, int64_t mean, enum what what)
{
	return mean > 0 ? post(w, draw(w, mean), what) : NULL;
}

void regroup(struct world *w)
{
	const struct dl_fleet_config *c = w->config;

	if (!c->regroup_ns || !w->now || w->ending || w->now < w->regroup_end)
		return;
	w->regroup_at = w->now + c->gather_ns;
	w->regroup_end = w->regroup_at + c->regroup_ns;
}

int is_calm(const struct world *w)
{
	return w->ending && w->config->calm_end;
}

static void drop(struct world *w, struct event *e)
{
	if (e->what == TO_SYNCER && e->sync.kind == DL_EV_PUSH)
		dl_ledger_let_go(&w->ledger, e->record);
	if (e->versions) {
		free(e->versions);
		free(e->origins);
		free(e->seqs);
	}
	e->next = w->free;
	w->free = e;
}

/* The syncer counts what it sent once that is applied. */
static void count_down(struct world *w, struct event *e)
{
	struct waiting *x =
		&w->node[e->m].link[e->s].waiting[e->sync.fragment];

	e->sync.elements = x->sent * w->config->elements;
	e->sync.bytes = x->sent * w->config->global_bytes;
	x->sent = 0;
}

static void deliver_up(struct world *w, struct event *e)
{
	struct hub *h = &w->hub[e->s];
	uint64_t clock = e->sync.clock;

	if (!h->core || w->node[e->m].link[e->s].gen != e->gen)
		return;
	if (e->sync.kind == DL_EV_PUSH) {
		hub_push(w, e);
		return;
	}
	if (e->sync.kind == DL_EV_APPLIED)
		count_down(w, e);
	hub_event(w, e->s, &e->sync);
	if (h->core && e->sync.kind == DL_EV_STEP &&
		!w->node[e->m].config->liar && dl_sync_clock(h->core) < clock)
		dl_ledger_fault(&w->ledger, "the run's clock lags behind %s",
			w->node[e->m].name);
}

/* What happens to one learner: void unless its process is the same. */
static void node_happens(struct world *w, const struct event *e)
{
	struct node *n = &w->node[e->m];
	struct event *again;

	if (!n->core || n->gen != e->gen)
		return;
	if (e->what == CONNECT) {
		connect_link(w, e->m, e->s);
		return;
	}
	if (is_calm(w))
		return;
	if (e->what == DIE) {
		node_die(w, e->m, draw(w, node_away(w, e->m)));
	} else if (e->what == DRAIN) {
		n->draining = 1;
		node_event(
			w, e->m, &(struct dl_learn_event){.kind = DL_LE_DRAIN});
	} else {
		again = post_random(w, w->config->trainer_ns, TRAINER_DIES);
		again->m = e->m;
		again->gen = n->gen;
		node_trainer_dies(w, e->m);
	}
}

/* What happens to a link: void unless it is the same connection. */
static void link_happens(struct world *w, const struct event *e)
{
	struct node *n = &w->node[e->m];

	if (n->link[e->s].gen != e->gen)
		return;
	if (e->what == CUT) {
		if (!is_calm(w))
			cut_link(w, e->m, e->s);
	} else if (e->what == LOST) {
		if (n->core)
			node_event(w, e->m,
				&(struct dl_learn_event){
					.kind = DL_LE_LOST, .syncer = e->s});
	} else if (w->hub[e->s].core) {
		hub_event(w, e->s,
			&(struct dl_sync_event){.kind = DL_EV_LEAVE,
				.learner = n->name,
				.instance = e->sync.instance});
	}
}

static void hub_happens(struct world *w, const struct event *e)
{
	struct hub *h = &w->hub[e->s];

	if (e->what == RESTART) {
		hub_start(w, e->s);
		return;
	}
	if (!h->core || h->gen != e->gen)
		return;
	if (e->what == WAKE)
		hub_wake(w, e->s);
	else if (e->what == COMMIT)
		hub_commit(w, e->s, e->p);
	else if (!is_calm(w))
		hub_crash(w, e->s, chance(w, 0.5));
}

/* How long the end may take: two deadlines of the syncer's, and whatever else
 * was under way. */
static int64_t patience(const struct world *w)
{
	const struct dl_fleet_config *c = w->config;
	int64_t t = 2 * c->sync.end_ns + 10 * c->restart_ns + 10 * c->down_ns +
		    10 * c->cut_for_ns + 10 * c->load_ns + 10 * c->detect_ns +
		    10 * c->merge_ns;

	for (uint32_t m = 0; m < c->learners; m++)
		t += 20 * w->node[m].mean_ns + 4 * c->learner[m].delay_ns +
		     4 * w->fragments *
			     (c->learner[m].push_ns + c->learner[m].global_ns);
	return is_calm(w) ? t : 20 * t;
}

static void ask_for_end(struct world *w)
{
	if (w->ending)
		return;
	w->ending = 1;
	w->end_by = w->now + patience(w);
	for (uint32_t s = 0; s < w->config->syncers; s++)
		if (w->hub[s].core)
			hub_plain(w, s, DL_EV_END);
}

/* Who comes takes part once the others have stood still for it. */
static void arrive(struct world *w, const struct event *e)
{
	struct event *again;

	if (w->node[e->m].core)
		return;
	if (!e->regrouped)
		regroup(w);
	if (w->now >= w->regroup_end) {
		node_born(w, e->m);
		return;
	}
	again = post(w, w->regroup_end - w->now, BORN);
	again->m = e->m;
	again->regrouped = 1;
}

static void happen(struct world *w, struct event *e)
{
	struct node *n = &w->node[e->m];

	switch (e->what) {
	case TO_SYNCER:
		deliver_up(w, e);
		break;
	case TO_LEARNER:
		if (n->core && n->link[e->s].gen == e->gen)
			node_event(w, e->m, &e->learn);
		break;
	case BORN:
		arrive(w, e);
		break;
	case STEP:
		if (n->core && n->trainer == e->gen)
			node_step(w, e->m);
		break;
	case KILL:
		if (n->core && !is_calm(w))
			node_die(w, e->m, e->down);
		break;
	case DIE:
	case DRAIN:
	case CONNECT:
	case TRAINER_DIES:
		node_happens(w, e);
		break;
	case CUT:
	case LOST:
	case LEAVE:
		link_happens(w, e);
		break;
	case WAKE:
	case COMMIT:
	case CRASH:
	case RESTART:
		hub_happens(w, e);
		break;
	case END:
		ask_for_end(w);
		break;
	}
}

static int has_reached_end(const struct world *w)
{
	const struct dl_fleet_config *c = w->config;
	uint64_t merges = 0, clock = 0;

	for (uint32_t s = 0; s < c->syncers; s++) {
		merges += w->hub[s].merges;
		if (c->steps && w->hub[s].core &&
			dl_sync_clock(w->hub[s].core) > clock)
			clock = dl_sync_clock(w->hub[s].core);
	}
	return (c->rounds && merges >= c->rounds) ||
	       (c->steps && clock >= c->steps) ||
	       (c->tokens && w->tokens >= c->tokens);
}

/* Does a learner that was there when all syncers were done still run? */
static int is_awaited(const struct world *w)
{
	for (uint32_t m = 0; m < w->config->learners; m++)
		if (w->node[m].core && w->node[m].done == w->config->syncers)
			return 1;
	return 0;
}

static void fetch(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i += CACHE_LINE)
		__builtin_prefetch((const char *)p + i);
}

/* What a thousand learners are does not fit into a cache: it is asked for while
 * earlier events are carried out, or each would wait for memory. */
static void look_ahead(const struct world *w)
{
	const struct event *e = dl_queue_guess(&w->queue, AHEAD_EVENT);
	const struct node *n;

	if (e)
		fetch(e, sizeof *e);
	e = dl_queue_guess(&w->queue, AHEAD_NODE);
	if (e)
		fetch(&w->node[e->m], sizeof *w->node);
	e = dl_queue_guess(&w->queue, AHEAD_CORE);
	if (!e)
		return;
	n = &w->node[e->m];
	fetch(n->core, CORE_BYTES);
	fetch(n->link, 1);
	fetch(n->kept, 1);
}

static void go(struct world *w)
{
	struct event *e;

	while (!w->ledger.fault[0] && (e = dl_queue_take(&w->queue, &w->now))) {
		look_ahead(w);
		happen(w, e);
		drop(w, e);
		if (!w->ending && has_reached_end(w))
			ask_for_end(w);
		if (w->over == w->config->syncers &&
			!(w->config->calm_end && is_awaited(w)))
			return;
		if (w->ending && w->now > w->end_by)
			dl_ledger_fault(&w->ledger, "the run does not end");
	}
	if (!w->ledger.fault[0])
		dl_ledger_fault(&w->ledger, "nothing happens any more");
}

static int64_t mean_step(struct world *w, int64_t step_ns)
{
	double t = (double)step_ns, least = 0.1 * t;

	if (w->config->spread > 0)
		t *= 1 + w->config->spread * dl_rng_normal(&w->rng);
	return (int64_t)(t > least ? t : least);
}

static void make_sites(struct world *w)
{
	const struct dl_fleet_config *c = w->config;
	uint32_t last = 0;

	for (uint32_t m = 0; m < c->learners; m++)
		if (c->learner[m].site > last)
			last = c->learner[m].site;
	w->site = dl_alloc_array((size_t)last + 1, sizeof *w->site);
}

static void make_nodes(struct world *w)
{
	const struct dl_fleet_config *c = w->config;

	w->node = dl_alloc_array(c->learners, sizeof *w->node);
	for (uint32_t m = 0; m < c->learners; m++) {
		struct node *n = &w->node[m];

		n->config = &c->learner[m];
		snprintf(n->name, sizeof n->name, NODE_NAME "%06u", m);
		n->mean_ns = mean_step(w, n->config->step_ns);
		n->link = dl_alloc_array(c->syncers, sizeof *n->link);
		for (uint32_t s = 0; s < c->syncers; s++)
			n->link[s].waiting = dl_alloc_array(
				w->fragments, sizeof *n->link[s].waiting);
		n->version = dl_alloc_array(w->fragments, sizeof *n->version);
		post(w, n->config->start_ns, BORN)->m = m;
	}
	for (size_t i = 0; i < c->kills; i++) {
		struct event *e = post(w, c->kill[i].at_ns, KILL);

		e->m = c->kill[i].learner;
		e->down = c->kill[i].down_ns;
	}
}

static void make_hubs(struct world *w)
{
	const struct dl_fleet_config *c = w->config;

	w->hub = dl_alloc_array(c->syncers, sizeof *w->hub);
	for (uint32_t s = 0; s < c->syncers; s++) {
		struct hub *h = &w->hub[s];

		h->merge = dl_alloc_array(w->fragments, sizeof *h->merge);
		h->version = dl_alloc_array(w->fragments, sizeof *h->version);
		for (uint32_t p = 0; p < w->fragments; p++)
			h->version[p] = (struct dl_version){1, 0};
		hub_start(w, s);
	}
}

static void release(struct world *w)
{
	struct event *e;

	while ((e = dl_queue_take(&w->queue, &w->now)))
		drop(w, e);
	while ((e = w->free)) {
		w->free = e->next;
		free(e);
	}
	dl_queue_release(&w->queue);
	for (uint32_t m = 0; m < w->config->learners; m++) {
		dl_learn_free(w->node[m].core);
		for (uint32_t s = 0; s < w->config->syncers; s++)
			free(w->node[m].link[s].waiting);
		free(w->node[m].link);
		free(w->node[m].kept);
		free(w->node[m].version);
	}
	for (uint32_t s = 0; s < w->config->syncers; s++) {
		dl_sync_free(w->hub[s].core);
		dl_sync_saved_release(&w->hub[s].head);
		free(w->hub[s].held);
		free(w->hub[s].merge);
		free(w->hub[s].version);
	}
	free(w->node);
	free(w->site);
	free(w->hub);
	free(w->syncer);
	dl_ledger_release(&w->ledger);
}

static void add(struct dl_fleet_line *to, const struct dl_fleet_line *from)
{
	struct dl_account *a = &to->account;
	const struct dl_account *b = &from->account;

	a->own += b->own;
	a->merged += b->merged;
	a->late += b->late;
	a->refused += b->refused;
	a->overwritten += b->overwritten;
	a->lost += b->lost;
	a->unsent += b->unsent;
	a->out += b->out;
	a->pushes += b->pushes;
	a->merged_pushes += b->merged_pushes;
	a->late_pushes += b->late_pushes;
	to->steps += from->steps;
	to->rounds += from->rounds;
	to->reported += from->reported;
	to->busy_ns += from->busy_ns;
	to->up_ns += from->up_ns;
	to->allocated_ns += from->allocated_ns;
	if (from->clock > to->clock)
		to->clock = from->clock;
}

/* The syncers' counters against the ledger's. */
static void check_counts(
	struct world *w, uint32_t m, const struct dl_account *a)
{
	const struct node *n = &w->node[m];
	uint64_t crashes = 0;

	if (a->own != a->merged + a->late + a->refused + a->overwritten +
			      a->lost + a->unsent + a->out)
		dl_ledger_fault(&w->ledger, "%s: steps are missing", n->name);
	for (uint32_t s = 0; s < w->config->syncers; s++)
		crashes += w->hub[s].crashes;
	if (n->merged + n->uncounted != a->merged ||
		(!crashes && !n->config->liar &&
			(n->late != a->late || n->refused != a->refused)))
		dl_ledger_fault(&w->ledger,
			"%s: merged %llu, late %llu, "
			"refused %llu; the syncer counts %llu, %llu, %llu",
			n->name, (unsigned long long)a->merged,
			(unsigned long long)a->late,
			(unsigned long long)a->refused,
			(unsigned long long)(n->merged + n->uncounted),
			(unsigned long long)n->late,
			(unsigned long long)n->refused);
}

static void close_books(struct world *w, struct dl_fleet_result *out)
{
	for (uint32_t s = 0; s < w->config->syncers; s++) {
		if (w->hub[s].core)
			hub_collect(w, s);
		out->merges += w->hub[s].merges;
		out->rounds += w->hub[s].rounds;
	}
	for (uint32_t m = 0; m < w->config->learners; m++) {
		struct node *n = &w->node[m];
		struct dl_fleet_line *line = &out->learner[m];

		node_check(w, m);
		if (n->core) {
			n->line.up_ns += w->now - n->born_at;
			n->line.clock = dl_learn_clock(n->core);
		}
		*line = n->line;
		dl_ledger_sum(&w->ledger, m, &line->account);
		if (w->now > n->config->start_ns)
			line->allocated_ns = w->now - n->config->start_ns;
		check_counts(w, m, &line->account);
		add(&out->total, line);
	}
	out->ended_ns = w->now;
	memcpy(out->fault, w->ledger.fault, sizeof out->fault);
}

void dl_fleet_run(const struct dl_fleet_config *c, struct dl_fleet_result *out)
{
	struct world w = {
		.config = c,
		.fragments = c->sync.schedule.fragments,
		.rng = {.key = dl_rng_key(c->seed, 0)},
	};

	*out = (struct dl_fleet_result){0};
	out->learner = dl_alloc_array(c->learners, sizeof *out->learner);
	w.syncer = dl_alloc_array(w.fragments, sizeof *w.syncer);
	for (uint32_t p = 0; p < w.fragments; p++)
		w.syncer[p] = p % c->syncers;
	dl_ledger_init(&w.ledger, c->learners, w.fragments);
	make_sites(&w);
	make_nodes(&w);
	make_hubs(&w);
	if (c->time_ns)
		post(&w, c->time_ns, END);
	go(&w);
	close_books(&w, out);
	release(&w);
}

void dl_fleet_result_release(struct dl_fleet_result *r)
{
	free(r->learner);
	*r = (struct dl_fleet_result){0};
}
