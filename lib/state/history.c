#include "state/history.h"

#include <math.h>
#include <string.h>

enum { FIRST_WIDTH = 10000000 }; /* ns: folded it stays a round number */

const char *const dl_stat_state_words[DL_STAT_STATES + 1] = {
	"unknown", "gone", "away", "joining", "training", "stalled", NULL};
const char dl_stat_state_letters[DL_STAT_STATES + 1] = "-gajts";

static const struct dl_history_part empty = {
	.loss = NAN, .loss_min = NAN, .loss_max = NAN};

void dl_history_init(struct dl_history *h)
{
	*h = (struct dl_history){.width = FIRST_WIDTH};
	for (size_t i = 0; i < DL_HISTORY_ROOM; i++)
		h->bucket[i] = empty;
}

int dl_history_full(const struct dl_history *h, int64_t t)
{
	return t / h->width >= DL_HISTORY_ROOM;
}

static void join_losses(
	struct dl_history_part *a, const struct dl_history_part *b)
{
	double n = (double)a->losses + (double)b->losses;

	if (!b->losses)
		return;
	if (!a->losses)
		a->loss = b->loss;
	a->loss_min = fmin(a->loss_min, b->loss_min);
	a->loss_max = fmax(a->loss_max, b->loss_max);
	a->loss += (b->loss - a->loss) * ((double)b->losses / n);
	a->losses += b->losses;
}

static void join_buckets(
	struct dl_history_part *a, const struct dl_history_part *b)
{
	a->tokens += b->tokens;
	a->wasted += b->wasted;
	a->refused += b->refused;
	a->bytes_up += b->bytes_up;
	a->bytes_down += b->bytes_down;
	a->merges += b->merges;
	a->members += b->members;
	a->reports += b->reports;
	a->training_ns += b->training_ns;
	a->due_ns += b->due_ns;
	join_losses(a, b);
}

void dl_history_fold(struct dl_history *h)
{
	size_t half = DL_HISTORY_ROOM / 2;

	for (size_t i = 0; i < half; i++) {
		h->bucket[i] = h->bucket[2 * i];
		join_buckets(h->bucket + i, h->bucket + 2 * i + 1);
	}
	for (size_t i = half; i < DL_HISTORY_ROOM; i++)
		h->bucket[i] = empty;
	h->width *= 2;
	h->n = (h->n + 1) / 2;
}

struct dl_history_part *dl_history_at(struct dl_history *h, int64_t t)
{
	size_t i = (size_t)(t / h->width);

	if (i >= h->n)
		h->n = i + 1;
	return h->bucket + i;
}

void dl_history_loss(struct dl_history_part *b, double loss)
{
	const struct dl_history_part one = {
		.losses = 1, .loss = loss, .loss_min = loss, .loss_max = loss};

	join_losses(b, &one);
}

static int is_due(enum dl_stat_state state)
{
	return state != DL_STAT_UNKNOWN && state != DL_STAT_GONE;
}

void dl_history_spend(struct dl_history *h, float *held, int64_t from,
	int64_t to, enum dl_stat_state state)
{
	while (from < to) {
		size_t i = (size_t)(from / h->width);
		int64_t end = ((int64_t)i + 1) * h->width;
		double part = (double)((end < to ? end : to) - from);
		struct dl_history_part *b = dl_history_at(h, from);

		held[i * DL_STAT_STATES + state] += (float)part;
		if (state == DL_STAT_TRAINING)
			b->training_ns += part;
		if (is_due(state))
			b->due_ns += part;
		from = end;
	}
}

void dl_history_fold_held(float *held)
{
	size_t half = DL_HISTORY_ROOM / 2 * DL_STAT_STATES;

	for (size_t i = 0; i < half; i++) {
		size_t bucket = i / DL_STAT_STATES, state = i % DL_STAT_STATES;
		const float *two = held + 2 * bucket * DL_STAT_STATES + state;

		held[i] = two[0] + two[DL_STAT_STATES];
	}
	memset(held + half, 0, half * sizeof *held);
}

static int is_empty(const float *held)
{
	for (size_t k = 0; k < DL_STAT_STATES; k++)
		if (held[k] > 0)
			return 0;
	return 1;
}

void dl_history_timeline(const float *held, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++) {
		const float *b = held + i * DL_STAT_STATES;
		size_t most = 0;

		/* A bucket that begins right now is like the one before. */
		if (i && i + 1 == n && is_empty(b)) {
			out[i] = out[i - 1];
			continue;
		}
		for (size_t k = 1; k < DL_STAT_STATES; k++)
			if (b[k] > b[most])
				most = k;
		out[i] = dl_stat_state_letters[most];
	}
	out[n] = '\0';
}
