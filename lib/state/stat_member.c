/* Members: their names, their counters and their time. */
#include <math.h>
#include <string.h>

#include "state/stat_in.h"

struct dl_stat_member *dl_stat_find(struct dl_stat *s, const char *name)
{
	size_t low = 0, high = s->members;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(s->member[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < s->members && !strcmp(s->member[low].name, name))
		return s->member + low;
	if (s->members == s->room) {
		s->room = s->room ? 2 * s->room : 8;
		s->member = dl_resize(s->member, s->room, sizeof *s->member);
	}
	memmove(s->member + low + 1, s->member + low,
		(s->members++ - low) * sizeof *s->member);
	s->member[low] = (struct dl_stat_member){.loss = NAN,
		.held = dl_alloc_array(
			DL_HISTORY_ROOM, DL_STAT_STATES * sizeof(float))};
	strcpy(s->member[low].name, name);
	return s->member + low;
}

void dl_stat_become(
	struct dl_stat *s, struct dl_stat_member *m, enum dl_stat_state state)
{
	s->training -= m->state == DL_STAT_TRAINING;
	s->training += state == DL_STAT_TRAINING;
	m->state = state;
}

static void spend(struct dl_stat *s, struct dl_stat_member *m, int64_t until,
	enum dl_stat_state state)
{
	if (until <= m->since)
		return;
	dl_history_spend(&s->history, m->held, m->since, until, state);
	m->ns[state] += until - m->since;
	m->since = until;
}

void dl_stat_spend(
	struct dl_stat *s, struct dl_stat_member *m, enum dl_stat_state state)
{
	spend(s, m, s->t, state);
}

void dl_stat_charge(struct dl_stat *s, struct dl_stat_member *m)
{
	int works = m->state == DL_STAT_TRAINING || m->state == DL_STAT_JOINING;

	if (works && s->t - m->lively > s->stall) {
		spend(s, m, m->lively + s->stall, m->state);
		spend(s, m, s->t, DL_STAT_STALLED);
	}
	spend(s, m, s->t, m->state);
}

void dl_stat_add_counters(struct dl_sync_learner_info *sum,
	const struct dl_sync_learner_info *more)
{
	sum->pushes += more->pushes;
	sum->merged_pushes += more->merged_pushes;
	sum->merged_steps += more->merged_steps;
	sum->merged_tokens += more->merged_tokens;
	sum->late_pushes += more->late_pushes;
	sum->late_steps += more->late_steps;
	sum->late_tokens += more->late_tokens;
	for (int r = 0; r < DL_REFUSALS; r++)
		sum->refused[r] += more->refused[r];
	sum->refused_steps += more->refused_steps;
	sum->again += more->again;
	sum->scaled += more->scaled;
	sum->elements_up += more->elements_up;
	sum->bytes_up += more->bytes_up;
	sum->elements_down += more->elements_down;
	sum->bytes_down += more->bytes_down;
	sum->rounds += more->rounds;
	sum->reported += more->reported;
}
