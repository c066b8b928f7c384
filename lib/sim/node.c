/* A learner's driver: carries out what its core says. */
#include "sim/world.h"

#include <math.h>
#include <stdlib.h>

#include "base/exact.h"
#include "base/mem.h"

static void post_about(
	struct world *w, int64_t mean, enum what what, uint32_t m, uint64_t gen)
{
	struct event *e = post_random(w, mean, what);

	if (!e)
		return;
	e->m = m;
	e->gen = gen;
}

void node_born(struct world *w, uint32_t m)
{
	const struct dl_fleet_config *c = w->config;
	struct node *n = &w->node[m];
	struct dl_learn_config learn = {
		.schedule = c->sync.schedule,
		.tau = c->sync.tau,
		.wait = c->wait,
		.apply = c->apply,
		.alpha = c->alpha,
		.syncers = c->syncers,
		.syncer = c->syncers > 1 ? w->syncer : NULL,
	};

	n->core = dl_learn_new(&learn);
	n->gen = ++w->gens;
	n->instance = dl_rng_next(&w->rng);
	n->draining = n->finished = n->training = n->broken = 0;
	n->load_ns = c->join_ns;
	n->failed = 0;
	n->done = 0;
	n->born_at = w->now;
	n->before = w->ledger.learner[m];
	for (uint32_t p = 0; p < w->fragments; p++)
		n->version[p] = (struct dl_version){0, 0};
	for (uint32_t s = 0; s < c->syncers; s++) {
		struct event *e = post(w, 0, CONNECT);

		e->m = m;
		e->s = s;
		e->gen = n->gen;
	}
	post_about(w, c->death_ns, DIE, m, n->gen);
	post_about(w, c->drain_ns, DRAIN, m, n->gen);
	post_about(
		w, n->config->here_ns, c->regroup_ns ? DIE : DRAIN, m, n->gen);
	post_about(w, c->trainer_ns, TRAINER_DIES, m, n->gen);
}

/* The core's counters against the ledger's. */
void node_check(struct world *w, uint32_t m)
{
	struct node *n = &w->node[m];
	struct dl_learn_info i;
	const struct dl_account *a = &w->ledger.learner[m];

	if (!n->core)
		return;
	dl_learn_info(n->core, &i);
	if (i.steps * w->fragments !=
			i.pushed + i.overwritten + i.lost + i.unsent ||
		i.steps * w->fragments != a->own - n->before.own ||
		i.unsent != dl_ledger_unsent(&w->ledger, m) ||
		i.overwritten != a->overwritten - n->before.overwritten ||
		i.lost != a->lost - n->before.lost + n->failed ||
		i.outstanding != n->kepts)
		dl_ledger_fault(&w->ledger,
			"learner %u counts other than the ledger: %llu steps, "
			"%llu pushed, %llu overwritten, %llu lost, %llu unsent",
			m, (unsigned long long)i.steps,
			(unsigned long long)i.pushed,
			(unsigned long long)i.overwritten,
			(unsigned long long)i.lost,
			(unsigned long long)i.unsent);
}

static void forget_kept(struct world *w, struct node *n, size_t i)
{
	dl_ledger_let_go(&w->ledger, n->kept[i].record);
	n->kept[i] = n->kept[--n->kepts];
}

static size_t find_kept(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	for (size_t i = 0; i < n->kepts; i++)
		if (n->kept[i].push.fragment == a->fragment &&
			n->kept[i].push.seq == a->seq)
			return i;
	dl_ledger_fault(&w->ledger, "%s: push %llu of fragment %u is not kept",
		n->name, (unsigned long long)a->seq, a->fragment);
	return n->kepts;
}

/* What the process had is lost, unless a syncer merges it yet. */
static void end_process(struct world *w, struct node *n)
{
	uint32_t m = (uint32_t)(n - w->node);

	node_check(w, m);
	n->line.up_ns += w->now - n->born_at;
	n->line.clock = dl_learn_clock(n->core);
	for (uint32_t s = 0; s < w->config->syncers; s++)
		close_link(w, m, s);
	for (; n->kepts; forget_kept(w, n, 0))
		dl_ledger_fate(&w->ledger, n->kept[0].record, DL_FATE_LOST);
	dl_ledger_reset(&w->ledger, m);
	dl_learn_free(n->core);
	n->core = NULL;
	n->gen = ++w->gens;
	n->trainer = ++w->gens;
	regroup(w);
}

int64_t node_away(const struct world *w, uint32_t m)
{
	const struct dl_fleet_learner *l = w->node[m].config;

	return l->here_ns ? l->away_ns : w->config->down_ns;
}

void node_die(struct world *w, uint32_t m, int64_t down)
{
	end_process(w, &w->node[m]);
	post(w, down, BORN)->m = m;
}

/* A push's norm: steps go about 1 far, now and then twice that, and each its
 * own way. */
static double draw_norm(struct world *w, uint64_t steps)
{
	return sqrt((double)steps) * dl_exact_exp(0.3 * dl_rng_normal(&w->rng));
}

static void do_copy(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	uint32_t m = (uint32_t)(n - w->node);
	struct kept *k;

	if (n->training)
		dl_ledger_fault(
			&w->ledger, "%s: a copy of a moving trainer", n->name);
	if (n->kepts == n->kept_cap) {
		n->kept_cap = n->kept_cap ? 2 * n->kept_cap : 4;
		n->kept = dl_resize(n->kept, n->kept_cap, sizeof *n->kept);
	}
	k = &n->kept[n->kepts++];
	k->record = dl_ledger_copy(
		&w->ledger, m, a->fragment, n->instance, a->seq, a->steps);
	k->push = (struct dl_sync_event){
		.kind = DL_EV_PUSH,
		.fragment = a->fragment,
		.seq = a->seq,
		.step = a->step,
		.base = a->base,
		.steps = a->steps,
		.tokens = a->tokens,
		.norm = draw_norm(w, a->steps),
		.elements = w->config->elements,
		.bytes = w->config->push_bytes,
	};
	if (chance(w, w->config->copy_fails))
		n->broken = 1;
	k->sent = !n->broken;
	if (k->sent)
		send_up(w, m, a->syncer, &k->push, k->record);
}

static void do_apply(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	int order = dl_version_cmp(a->version, n->version[a->fragment]);

	if (order < 0 || (!order && !a->final))
		dl_ledger_fault(&w->ledger,
			"%s: version of fragment %u does not rise", n->name,
			a->fragment);
	if (n->training)
		dl_ledger_fault(
			&w->ledger, "%s: applied to a moving trainer", n->name);
	dl_ledger_apply(&w->ledger, (uint32_t)(n - w->node), a);
}

static void do_release(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	size_t i = find_kept(w, n, a);
	const struct dl_ledger_push *x;

	if (i == n->kepts)
		return;
	x = &w->ledger.push[n->kept[i].record];
	if (x->fate == DL_FATE_OUT && !w->ending && !n->draining)
		dl_ledger_fault(&w->ledger,
			"%s: push %llu of fragment %u "
			"released too early",
			n->name, (unsigned long long)x->seq, x->fragment);
	dl_ledger_fate(&w->ledger, n->kept[i].record, DL_FATE_LOST);
	forget_kept(w, n, i);
}

static void do_go(struct world *w, struct node *n)
{
	double t = (double)n->mean_ns *
		   (1 + n->config->jitter * dl_rng_normal(&w->rng));
	double least = 0.1 * (double)n->mean_ns;
	int64_t wait = n->load_ns;
	struct event *e;

	if (n->broken)
		return;
	if (n->training)
		dl_ledger_fault(&w->ledger, "%s: goes on twice", n->name);
	n->training = 1;
	n->step_ns = (int64_t)(t > least ? t : least);
	if (w->regroup_at <= w->now && w->regroup_end - w->now > wait)
		wait = w->regroup_end - w->now;
	e = post(w, wait + n->step_ns, STEP);
	e->m = (uint32_t)(n - w->node);
	e->gen = n->trainer = ++w->gens;
	n->load_ns = 0;
}

static void do_resend(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	size_t i = find_kept(w, n, a);

	if (i == n->kepts)
		return;
	n->kept[i].push.step = a->step;
	n->kept[i].push.base =
		dl_version_base(n->kept[i].push.base, a->version);
	send_up(w, (uint32_t)(n - w->node), a->syncer, &n->kept[i].push,
		n->kept[i].record);
}

/* Words to a syncer. */
static void do_tell(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	struct dl_sync_event ev = {
		.kind = DL_EV_STEP,
		.clock = a->clock,
		.steps = a->steps,
		.tokens = a->tokens,
		.loss = a->loss,
		.fragment = a->fragment,
		.version = a->version,
	};

	if (a->kind == DL_LA_APPLIED) {
		ev.kind = DL_EV_APPLIED;
		n->version[a->fragment] = a->version;
	} else if (a->kind == DL_LA_DRAINED) {
		ev.kind = DL_EV_DRAINED;
	}
	send_up(w, (uint32_t)(n - w->node), a->syncer, &ev, 0);
}

static void do_finish(struct world *w, struct node *n)
{
	uint32_t m = (uint32_t)(n - w->node);

	if (n->training || n->kepts)
		dl_ledger_fault(&w->ledger, "%s: finished too early", n->name);
	n->finished = 1;
	end_process(w, n);
	if (n->draining && !w->over)
		post(w, draw(w, node_away(w, m)), BORN)->m = m;
}

static void carry_out(
	struct world *w, struct node *n, const struct dl_learn_action *a)
{
	switch (a->kind) {
	case DL_LA_LOAD:
	case DL_LA_IMPORT:
	case DL_LA_EXPORT:
	case DL_LA_CLOCK:
		if (n->training)
			dl_ledger_fault(&w->ledger,
				"%s: a moving trainer is told", n->name);
		break;
	case DL_LA_COPY:
		do_copy(w, n, a);
		break;
	case DL_LA_APPLY:
		do_apply(w, n, a);
		break;
	case DL_LA_GO:
		do_go(w, n);
		break;
	case DL_LA_WANT: /* after an IMPORT only */
		break;
	case DL_LA_STEP:
	case DL_LA_APPLIED:
	case DL_LA_DRAINED:
		do_tell(w, n, a);
		break;
	case DL_LA_RESEND:
		do_resend(w, n, a);
		break;
	case DL_LA_RELEASE:
		do_release(w, n, a);
		break;
	case DL_LA_FINISH:
		do_finish(w, n);
		break;
	}
}

static void tell_core(
	struct world *w, struct node *n, struct dl_learn_event *ev)
{
	struct dl_learn_action a;

	ev->now = w->now;
	dl_learn_event(n->core, ev);
	while (n->core && dl_learn_next(n->core, &a))
		carry_out(w, n, &a);
}

/* A trainer died in a copy: that copy and those after it were not made. */
static void tell_failures(struct world *w, struct node *n)
{
	struct dl_learn_event ev = {.kind = DL_LE_FAILED};

	for (size_t i = 0; i < n->kepts;) {
		const struct kept *k = &n->kept[i];

		if (k->sent) {
			i++;
			continue;
		}
		ev.fragment = k->push.fragment;
		ev.seq = k->push.seq;
		n->failed += w->ledger.push[k->record].steps;
		dl_ledger_fate(&w->ledger, k->record, DL_FATE_LOST);
		forget_kept(w, n, i);
		tell_core(w, n, &ev);
	}
	n->broken = 0;
	if (n->core)
		node_trainer_dies(w, (uint32_t)(n - w->node));
}

void node_event(struct world *w, uint32_t m, struct dl_learn_event *ev)
{
	struct node *n = &w->node[m];

	tell_core(w, n, ev);
	if (n->core && n->broken)
		tell_failures(w, n);
}

void node_step(struct world *w, uint32_t m)
{
	struct node *n = &w->node[m];

	n->training = 0;
	n->line.steps++;
	n->line.busy_ns += n->step_ns;
	dl_ledger_step(&w->ledger, m);
	w->tokens += n->config->tokens;
	node_event(w, m,
		&(struct dl_learn_event){
			.kind = DL_LE_STEP,
			.tokens = n->config->tokens,
			.loss = 1,
		});
}

void node_trainer_dies(struct world *w, uint32_t m)
{
	struct node *n = &w->node[m];

	n->training = 0;
	n->trainer = ++w->gens;
	n->load_ns = draw(w, w->config->load_ns);
	dl_ledger_reset(&w->ledger, m);
	node_event(w, m, &(struct dl_learn_event){.kind = DL_LE_RESET});
}
