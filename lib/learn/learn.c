/* The core's outside: making it, events in, actions out, what it shows. */
#include "learn/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct dl_learn *dl_learn_new(const struct dl_learn_config *c)
{
	struct dl_learn *l = dl_alloc(sizeof *l);

	l->config = *c;
	l->config.syncer = NULL;
	l->fragments = c->schedule.fragments;
	l->fragment = dl_alloc_array(l->fragments, sizeof *l->fragment);
	l->called = dl_alloc(l->fragments);
	l->syncer = dl_alloc_array(c->syncers, sizeof *l->syncer);
	if (c->syncer) {
		uint32_t *map = dl_alloc_array(l->fragments, sizeof *map);

		memcpy(map, c->syncer, l->fragments * sizeof *map);
		l->config.syncer = map;
	}
	l->step_told_at = INT64_MIN / 2;
	l->loss = NAN;
	return l;
}

void dl_learn_free(struct dl_learn *l)
{
	if (!l)
		return;
	for (uint32_t p = 0; p < l->fragments; p++)
		free(l->fragment[p].sent);
	free((void *)l->config.syncer);
	free(l->fragment);
	free(l->called);
	free(l->syncer);
	free(l->action);
	free(l);
}

uint64_t dl_learn_clock(const struct dl_learn *l)
{
	uint64_t clock = 0;

	for (uint32_t i = 0; i < l->config.syncers; i++)
		if (l->syncer[i].clock > clock)
			clock = l->syncer[i].clock;
	return clock;
}

uint64_t dl_learn_clock_at(const struct dl_learn *l, uint32_t syncer)
{
	return l->syncer[syncer].clock;
}

struct dl_learn_action *learn_act(
	struct dl_learn *l, enum dl_learn_action_kind kind)
{
	struct dl_learn_action *a;

	if (l->actions == l->action_cap) {
		l->action_cap = l->action_cap ? 2 * l->action_cap : 8;
		l->action =
			dl_resize(l->action, l->action_cap, sizeof *l->action);
	}
	a = &l->action[l->actions++];
	*a = (struct dl_learn_action){.kind = kind, .clock = dl_learn_clock(l)};
	return a;
}

static void on_step(struct dl_learn *l, const struct dl_learn_event *ev)
{
	l->steps++;
	l->trainer_clock++;
	for (uint32_t i = 0; i < l->config.syncers; i++)
		l->syncer[i].clock++;
	l->tokens += ev->tokens;
	l->loss = ev->loss;
	l->at_boundary = 1;
}

static void on_open(struct dl_learn *l, const struct dl_learn_event *ev)
{
	struct fragment *f = &l->fragment[ev->fragment];
	struct syncer *s = &l->syncer[syncer_of(l, ev->fragment)];

	if (f->opened < ev->step)
		f->opened = ev->step;
	if (s->opened < ev->step)
		s->opened = ev->step;
	l->called[ev->fragment] = 1;
}

/* What they have is to be delivered. */
static void call_all(struct dl_learn *l)
{
	memset(l->called, 1, l->fragments);
}

/* One export does for all who wait, so it is the latest clock that counts. */
static void on_export(struct dl_learn *l, const struct dl_learn_event *ev)
{
	if (!l->exporting || l->export_at < ev->clock)
		l->export_at = ev->clock;
	l->exporting = 1;
}

static void on_reset(struct dl_learn *l)
{
	for (uint32_t p = 0; p < l->fragments; p++) {
		l->lost += steps_of(l, p);
		keep_of(l, p, 0, 0);
	}
	l->loaded = l->at_boundary = 0;
	if (l->newcomer)
		learn_forget_state(l);
}

void dl_learn_event(struct dl_learn *l, const struct dl_learn_event *ev)
{
	if (l->action_at == l->actions)
		l->action_at = l->actions = 0;
	if (l->finished)
		return;
	switch (ev->kind) {
	case DL_LE_STATE:
		learn_on_state(l, ev);
		break;
	case DL_LE_WELCOME:
		learn_on_welcome(l, ev);
		break;
	case DL_LE_LOST:
		l->syncer[ev->syncer] = (struct syncer){
			.clock = l->syncer[ev->syncer].clock,
			.opened = l->syncer[ev->syncer].opened};
		break;
	case DL_LE_OPEN:
		on_open(l, ev);
		break;
	case DL_LE_GLOBAL:
		learn_on_global(l, ev);
		break;
	case DL_LE_TAKEN:
		learn_on_taken(l, ev);
		break;
	case DL_LE_END:
		l->syncer[ev->syncer].ending = 1;
		call_all(l);
		break;
	case DL_LE_BYE:
		learn_on_bye(l, ev);
		break;
	case DL_LE_FAILED:
		learn_on_failed(l, ev);
		break;
	case DL_LE_STEP:
		on_step(l, ev);
		break;
	case DL_LE_RESET:
		on_reset(l);
		break;
	case DL_LE_DRAIN:
		l->draining = 1;
		call_all(l);
		break;
	case DL_LE_EXPORT:
		on_export(l, ev);
		break;
	}
	learn_proceed(l, ev->now);
}

int dl_learn_next(struct dl_learn *l, struct dl_learn_action *a)
{
	if (l->action_at == l->actions)
		return 0;
	*a = l->action[l->action_at++];
	return 1;
}

struct dl_version dl_learn_version(const struct dl_learn *l, uint32_t p)
{
	return l->fragment[p].version;
}

uint64_t dl_learn_undelivered(const struct dl_learn *l, uint32_t p)
{
	const struct fragment *f = &l->fragment[p];
	uint64_t steps = steps_of(l, p);

	for (size_t i = 0; i < f->sents; i++)
		if (!f->sent[i].taken)
			steps += f->sent[i].steps;
	return f->done ? 0 : steps;
}

void dl_learn_info(const struct dl_learn *l, struct dl_learn_info *out)
{
	*out = (struct dl_learn_info){
		.clock = dl_learn_clock(l),
		.steps = l->steps,
		.tokens = l->tokens,
		.pushed = l->pushed,
		.overwritten = l->overwritten,
		.lost = l->lost,
		.holding = l->at_boundary,
		.finished = l->finished,
	};
	for (uint32_t p = 0; p < l->fragments; p++) {
		out->unsent += steps_of(l, p);
		out->outstanding += l->fragment[p].sents;
	}
}
