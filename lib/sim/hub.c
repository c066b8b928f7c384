/* A syncer's driver: carries out what its core says, keeps its store. */
#include "sim/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The core's words name learners; ours end in their number. */
static uint32_t find_node(const char *name)
{
	uint32_t m = 0;

	for (name += NODE_PREFIX; *name; name++)
		m = 10 * m + (uint32_t)(*name - '0');
	return m;
}

/* Only a syncer that can crash comes back to its store. */
static void save(const struct world *w, struct hub *h, uint32_t p)
{
	if (!w->config->crash_ns)
		return;
	dl_sync_saved_release(&h->head);
	dl_sync_save(h->core, p, &h->head);
}

/* Starts the process: on a new store, or from what was saved. */
void hub_start(struct world *w, uint32_t s)
{
	struct hub *h = &w->hub[s];
	const struct dl_fleet_config *c = w->config;
	struct dl_sync_config config = c->sync;
	struct event *e;

	config.shards = c->syncers;
	config.shard = s;
	if (!s && c->started)
		c->started(c->ctx, &config, h->head.epoch ? &h->head : NULL,
			w->now);
	h->core = h->head.epoch ? dl_sync_restore(&config, &h->head)
				: dl_sync_new(&config);
	h->gen = ++w->gens;
	h->wake_at = INT64_MAX;
	save(w, h, UINT32_MAX);
	e = post_random(w, c->crash_ns, CRASH);
	if (e) {
		e->s = s;
		e->gen = h->gen;
	}
	if (w->ending)
		hub_plain(w, s, DL_EV_END);
}

/* What this process counted; then it can go. */
void hub_collect(struct world *w, uint32_t s)
{
	struct hub *h = &w->hub[s];
	struct dl_sync_learner_info i;
	struct dl_sync_info info;

	dl_sync_info(h->core, &info);
	h->rounds += info.rounds;
	for (size_t k = 0; dl_sync_learner(h->core, k, &i); k++) {
		struct node *n = &w->node[find_node(i.name)];

		n->merged += i.merged_steps;
		n->late += i.late_steps;
		n->refused += i.refused_steps;
		n->line.rounds += i.rounds;
		n->line.reported += i.reported;
		if (i.refused[DL_REFUSED_CLOCK] + i.refused[DL_REFUSED_RATE] +
				i.refused[DL_REFUSED_COUNT] &&
			!n->config->liar)
			dl_ledger_fault(&w->ledger,
				"the honest report of %s was refused", n->name);
	}
	dl_sync_free(h->core);
	h->core = NULL;
	h->gen = ++w->gens;
}

static void lose_held(struct world *w, struct hub *h, int over)
{
	for (size_t i = 0; i < h->helds; i++) {
		if (!h->held[i].live)
			continue;
		if (over)
			dl_ledger_fault(
				&w->ledger, "push %zu was never released", i);
		dl_ledger_let_go(&w->ledger, h->held[i].record);
	}
	h->helds = h->held_free = 0;
}

static size_t hold(struct world *w, struct hub *h, size_t record)
{
	size_t place = h->held_free;

	if (place < h->helds) {
		h->held_free = h->held[place].free;
	} else {
		if (h->helds == h->held_cap) {
			h->held_cap = h->held_cap ? 2 * h->held_cap : 64;
			h->held = dl_resize(
				h->held, h->held_cap, sizeof *h->held);
		}
		h->held_free = ++h->helds;
	}
	h->held[place] = (struct held){.record = record, .live = 1};
	dl_ledger_hold(&w->ledger, record);
	return place;
}

/* kill -9, or a SIGTERM that commits the merges in hand first. */
void hub_crash(struct world *w, uint32_t s, int graceful)
{
	struct hub *h = &w->hub[s];

	if (graceful) {
		for (uint32_t p = 0; p < w->fragments; p++)
			if (h->merge[p].parts)
				hub_commit(w, s, p);
		if (!h->core)
			return;
		save(w, h, UINT32_MAX);
	}
	hub_collect(w, s);
	h->crashes++;
	lose_held(w, h, 0);
	memset(h->merge, 0, w->fragments * sizeof *h->merge);
	for (uint32_t m = 0; m < w->config->learners; m++)
		cut_link(w, m, s);
	post(w, draw(w, w->config->restart_ns), RESTART)->s = s;
}

static void do_welcome(struct world *w, struct hub *h, struct event *e)
{
	const struct node *n = &w->node[e->m];

	e->versions = dl_alloc_array(w->fragments, sizeof *e->versions);
	e->origins = dl_alloc_array(w->fragments, sizeof *e->origins);
	e->seqs = dl_alloc_array(w->fragments, sizeof *e->seqs);
	for (uint32_t p = 0; p < w->fragments; p++) {
		e->versions[p] = dl_sync_version(h->core, p);
		e->origins[p] = dl_sync_origin(h->core, p);
		e->seqs[p] = dl_sync_taken(h->core, n->name, n->instance, p);
	}
	e->learn.versions = e->versions;
	e->learn.origins = e->origins;
	e->learn.seqs = e->seqs;
}

/* Words to a learner. */
static void do_tell(
	struct world *w, struct hub *h, const struct dl_sync_action *a)
{
	static const enum dl_learn_event_kind kinds[] = {
		[DL_ACT_WELCOME] = DL_LE_WELCOME,
		[DL_ACT_OPEN] = DL_LE_OPEN,
		[DL_ACT_TAKEN] = DL_LE_TAKEN,
		[DL_ACT_GLOBAL] = DL_LE_GLOBAL,
		[DL_ACT_END] = DL_LE_END,
		[DL_ACT_BYE] = DL_LE_BYE,
	};
	uint32_t m = find_node(a->learner);
	struct event *e;

	if (w->node[m].instance != a->instance)
		return;
	e = send_down(w, m, (uint32_t)(h - w->hub),
		&(struct dl_learn_event){
			.kind = kinds[a->kind],
			.fragment = a->fragment,
			.clock = a->step,
			.step = a->step,
			.seq = a->seq,
			.version = a->version,
			.taken = a->taken,
			.final = a->final,
		});
	if (e && a->kind == DL_ACT_WELCOME)
		do_welcome(w, h, e);
	if (e && a->kind == DL_ACT_BYE)
		w->node[m].done++;
}

static void do_taken(
	struct world *w, struct hub *h, const struct dl_sync_action *a)
{
	const struct event *e = h->push;
	int honest = e && !w->node[e->m].config->liar;

	if (a->taken == DL_TAKEN_SETTLED)
		return;
	h->answers++;
	if (!e || a->seq != e->sync.seq) {
		dl_ledger_fault(&w->ledger, "an answer to no push");
		return;
	}
	if (a->taken == DL_TAKEN_LATE)
		dl_ledger_fate(&w->ledger, e->record, DL_FATE_LATE);
	else if (a->taken == DL_TAKEN_REFUSED)
		dl_ledger_fate(&w->ledger, e->record, DL_FATE_REFUSED);
	else if (e->lie)
		dl_ledger_fault(&w->ledger, "a lie was taken: %s",
			dl_taken_name(a->taken));
	if (a->taken == DL_TAKEN_AGAIN &&
		w->ledger.push[e->record].fate == DL_FATE_OUT)
		dl_ledger_fault(&w->ledger, "an open push is said settled");
	if (honest && a->taken == DL_TAKEN_REFUSED &&
		a->refusal != DL_REFUSED_END)
		dl_ledger_fault(&w->ledger, "%s is honest, yet refused: %s",
			w->node[e->m].name, dl_refusal_name(a->refusal));
}

static void do_merge(
	struct world *w, struct hub *h, const struct dl_sync_action *a)
{
	struct event *e;

	if (!a->parts)
		dl_ledger_fault(&w->ledger, "a merge of nothing");
	for (size_t i = 0; i < a->parts; i++) {
		if (!(a->part[i].weight > 0) || !isfinite(a->part[i].weight) ||
			!(a->part[i].scale > 0) || a->part[i].scale > 1)
			dl_ledger_fault(&w->ledger, "a part of no weight");
		if (i && strcmp(a->part[i - 1].learner, a->part[i].learner) > 0)
			dl_ledger_fault(&w->ledger, "parts out of order");
	}
	if (dl_version_cmp(a->version, h->version[a->fragment]) <= 0)
		dl_ledger_fault(&w->ledger, "a version that does not rise");
	if (h->merge[a->fragment].parts)
		dl_ledger_fault(&w->ledger, "two merges of a fragment at once");
	h->merge[a->fragment] = *a;
	e = post(w, w->config->merge_ns, COMMIT);
	e->s = (uint32_t)(h - w->hub);
	e->p = a->fragment;
	e->gen = h->gen;
}

static void do_release(
	struct world *w, struct hub *h, const struct dl_sync_action *a)
{
	struct held *x = &h->held[a->push];

	if (a->push >= h->helds || !x->live) {
		dl_ledger_fault(&w->ledger, "push %llu released twice",
			(unsigned long long)a->push);
		return;
	}
	dl_ledger_let_go(&w->ledger, x->record);
	x->live = 0;
	x->free = h->held_free;
	h->held_free = a->push;
}

static void do_done(struct world *w, struct hub *h)
{
	uint32_t s = (uint32_t)(h - w->hub);

	h->over = 1;
	w->over++;
	hub_collect(w, s);
	lose_held(w, h, 1);
}

static void carry_out(
	struct world *w, struct hub *h, const struct dl_sync_action *a)
{
	switch (a->kind) {
	case DL_ACT_TAKEN:
		do_taken(w, h, a);
		do_tell(w, h, a);
		break;
	case DL_ACT_WELCOME:
	case DL_ACT_OPEN:
	case DL_ACT_GLOBAL:
	case DL_ACT_END:
	case DL_ACT_BYE:
		do_tell(w, h, a);
		break;
	case DL_ACT_RELEASE:
		do_release(w, h, a);
		break;
	case DL_ACT_MERGE:
		do_merge(w, h, a);
		break;
	case DL_ACT_DONE:
		do_done(w, h);
		break;
	}
}

static void ask_to_wake(struct world *w, struct hub *h)
{
	int64_t at = dl_sync_wake(h->core);
	struct event *e;

	if (at >= h->wake_at)
		return;
	h->wake_at = at;
	e = post(w, at > w->now ? at - w->now : 0, WAKE);
	e->s = (uint32_t)(h - w->hub);
	e->gen = h->gen;
}

void hub_event(struct world *w, uint32_t s, struct dl_sync_event *ev)
{
	struct hub *h = &w->hub[s];
	struct dl_sync_action a;

	ev->now = w->now;
	if (!s && w->config->heard)
		w->config->heard(w->config->ctx, ev);
	dl_sync_event(h->core, ev);
	while (h->core && dl_sync_next(h->core, &a))
		carry_out(w, h, &a);
	if (!h->core)
		return;
	if (ev->kind == DL_EV_TIME && dl_sync_wake(h->core) <= w->now)
		dl_ledger_fault(&w->ledger, "the syncer never sleeps");
	ask_to_wake(w, h);
}

void hub_wake(struct world *w, uint32_t s)
{
	struct hub *h = &w->hub[s];

	h->wake_at = INT64_MAX;
	if (dl_sync_wake(h->core) <= w->now)
		hub_plain(w, s, DL_EV_TIME);
	else
		ask_to_wake(w, h);
}

/* A push has arrived whole. */
void hub_push(struct world *w, struct event *e)
{
	struct hub *h = &w->hub[e->s];

	e->sync.push = hold(w, h, e->record);
	h->push = e;
	h->answers = 0;
	hub_event(w, e->s, &e->sync);
	h->push = NULL;
	if (h->answers != 1)
		dl_ledger_fault(&w->ledger, "%d answers to a push", h->answers);
}

void hub_plain(struct world *w, uint32_t s, enum dl_sync_event_kind kind)
{
	hub_event(w, s, &(struct dl_sync_event){.kind = kind});
}

/* The merge of p in hand is in the store. Sometimes the process dies before it
 * knows. */
void hub_commit(struct world *w, uint32_t s, uint32_t p)
{
	struct hub *h = &w->hub[s];
	struct dl_sync_action a = h->merge[p];
	int dies = w->config->crash_ns && !is_calm(w) && chance(w, 0.002);

	save(w, h, p);
	h->merges++;
	h->version[p] = a.version;
	h->merge[p] = (struct dl_sync_action){0};
	for (size_t i = 0; i < a.parts; i++) {
		size_t record = h->held[a.part[i].push].record;
		struct dl_ledger_push *x = &w->ledger.push[record];

		dl_ledger_fate(&w->ledger, record, DL_FATE_MERGED);
		if (dies)
			w->node[x->learner].uncounted += x->steps;
	}
	if (dies)
		hub_crash(w, s, 0);
	else
		hub_event(w, s,
			&(struct dl_sync_event){
				.kind = DL_EV_MERGED,
				.fragment = p,
				.version = a.version,
			});
}
