#include "state/stat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void dl_stat_init(struct dl_stat *s)
{
	*s = (struct dl_stat){0};
}

void dl_stat_release(struct dl_stat *s)
{
	dl_sync_free(s->core);
	free(s->member);
	dl_stat_init(s);
}

static size_t place_of(const struct dl_stat *s, const char *name)
{
	size_t low = 0, high = s->members;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(s->member[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct dl_stat_member *member(struct dl_stat *s, const char *name)
{
	size_t i = place_of(s, name);

	if (i < s->members && !strcmp(s->member[i].name, name))
		return s->member + i;
	if (s->members == s->room) {
		s->room = s->room ? 2 * s->room : 8;
		s->member = dl_resize(s->member, s->room, sizeof *s->member);
	}
	memmove(s->member + i + 1, s->member + i,
		(s->members++ - i) * sizeof *s->member);
	s->member[i] = (struct dl_stat_member){.info = {.loss = NAN}};
	strcpy(s->member[i].name, name);
	return s->member + i;
}

/* The core's learner of that name; 0 when it knows none. */
static int look_up(const struct dl_sync *core, const char *name,
	struct dl_sync_learner_info *out)
{
	struct dl_sync_info all;
	size_t low = 0, high;

	dl_sync_info(core, &all);
	high = all.learners;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order;

		dl_sync_learner(core, mid, out);
		order = strcmp(out->name, name);
		if (!order)
			return 1;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return 0;
}

/* What the learner of an event has done since its event before. */
static void follow(struct dl_stat *s, const struct dl_tape_line *l)
{
	struct dl_sync_learner_info info;
	struct dl_stat_member *m;

	if (!look_up(s->core, l->event.learner, &info))
		return;
	m = member(s, l->event.learner);
	if (m->counting && m->instance == info.instance) {
		m->steps += info.steps - m->steps_then;
		m->tokens += info.tokens - m->tokens_then;
	}
	if (m->counting && m->here_then)
		m->here_ns += l->now - m->now_then;
	m->counting = 1;
	m->instance = info.instance;
	m->steps_then = info.steps;
	m->tokens_then = info.tokens;
	m->here_then = info.connected;
	m->now_then = l->now;
	m->seen = l->wall;
}

static void add_counters(struct dl_sync_learner_info *sum,
	const struct dl_sync_learner_info *before)
{
	sum->pushes += before->pushes;
	sum->merged_pushes += before->merged_pushes;
	sum->merged_steps += before->merged_steps;
	sum->merged_tokens += before->merged_tokens;
	sum->late_pushes += before->late_pushes;
	sum->late_steps += before->late_steps;
	sum->late_tokens += before->late_tokens;
	for (int r = 0; r < DL_REFUSALS; r++)
		sum->refused[r] += before->refused[r];
	sum->refused_steps += before->refused_steps;
	sum->again += before->again;
	sum->scaled += before->scaled;
	sum->elements_up += before->elements_up;
	sum->bytes_up += before->bytes_up;
	sum->elements_down += before->elements_down;
	sum->bytes_down += before->bytes_down;
	sum->rounds += before->rounds;
	sum->reported += before->reported;
}

/* Adds what the core of one start has counted, and ends it. */
static void fold(struct dl_stat *s)
{
	struct dl_sync_learner_info info;
	uint64_t rounds = s->info.rounds, merges = s->info.merges, steps = 0;

	if (!s->core)
		return;
	for (size_t i = 0; dl_sync_learner(s->core, i, &info); i++) {
		struct dl_stat_member *m = member(s, info.name);

		steps += info.merged_steps;
		add_counters(&info, &m->info);
		if (isnan(info.loss))
			info.loss = m->info.loss;
		if (!info.clock)
			info.clock = m->info.clock;
		m->info = info;
		m->info.name = NULL; /* the core's */
		m->counting = 0;
	}
	dl_sync_info(s->core, &s->info);
	if (s->info.effective_h > 0)
		s->contributions +=
			(uint64_t)llround((double)steps / s->info.effective_h);
	s->info.rounds += rounds;
	s->info.merges += merges;
	dl_sync_free(s->core);
	s->core = NULL;
}

static void begin(struct dl_stat *s, const struct dl_tape_start *start)
{
	fold(s);
	for (size_t i = 0; i < s->members; i++)
		s->member[i].info.connected = s->member[i].info.stalled = 0;
	s->starts++;
	strcpy(s->run, start->run);
	s->core = start->restored
			  ? dl_sync_restore(&start->config, &start->saved)
			  : dl_sync_new(&start->config);
}

void dl_stat_line(struct dl_stat *s, const struct dl_tape_line *l)
{
	struct dl_sync_action a;

	if (!s->starts)
		s->first = l->wall;
	s->last = l->wall;
	if (l->kind == DL_TAPE_START) {
		begin(s, &l->start);
		return;
	}
	dl_sync_event(s->core, &l->event);
	while (dl_sync_next(s->core, &a))
		; /* carried out when the tape was made */
	if (l->event.learner)
		follow(s, l);
}

void dl_stat_end(struct dl_stat *s)
{
	fold(s);
}

void dl_stat_total(const struct dl_stat *s, struct dl_stat_member *sum)
{
	*sum = (struct dl_stat_member){.name = "*", .info = {.loss = NAN}};
	for (size_t i = 0; i < s->members; i++) {
		const struct dl_stat_member *m = s->member + i;

		sum->steps += m->steps;
		sum->tokens += m->tokens;
		sum->here_ns += m->here_ns;
		add_counters(&sum->info, &m->info);
		if (m->seen > sum->seen)
			sum->seen = m->seen;
	}
	sum->info.clock = s->info.clock;
}

double dl_stat_effective_h(const struct dl_stat *s)
{
	struct dl_stat_member sum;

	dl_stat_total(s, &sum);
	return s->contributions ? (double)sum.info.merged_steps /
					  (double)s->contributions
				: 0;
}

void dl_stat_turnout(const struct dl_stat *s, double *members, double *reports)
{
	struct dl_stat_member sum;

	*members = *reports = 0;
	if (!s->info.merges)
		return;
	dl_stat_total(s, &sum);
	*members = (double)sum.info.rounds / (double)s->info.merges;
	*reports = (double)sum.info.reported / (double)s->info.merges;
}
