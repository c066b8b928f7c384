/*
 * What is refused: each costs one push or one report, never the run, and
 * never touches the state.
 */
#include "sync/core.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double middle(const double *v, size_t n)
{
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

enum {
	SPEEDS_NEEDED = 3, /* with fewer learners nobody can tell who lies */
	BURST_LEAST = 64,  /* steps that may always come at once */
	KEPT_MOST = 64,	   /* pushes of a fragment, each with its memory: more
			    * only of one that makes steps for them */
	FASTEST_NS = 1000, /* a step: that nobody is faster needs no others */
};
static const double spare_ns = 2e9; /* credit above the burst is kept so long */

/* Puts the k smallest of v in front, and the next behind them. */
static void put_in_front(double *v, ptrdiff_t n, ptrdiff_t k)
{
	ptrdiff_t low = 0, high = n - 1;

	while (low < high) {
		ptrdiff_t i = low, j = high;
		double pivot = v[k];

		while (i <= j) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i <= j) {
				double x = v[i];

				v[i++] = v[j];
				v[j--] = x;
			}
		}
		if (j < k)
			low = i;
		if (i > k)
			high = j;
	}
}

/* The middle of values in no order. */
static double median(double *v, size_t n)
{
	size_t k = n / 2;
	double below;

	put_in_front(v, (ptrdiff_t)n, (ptrdiff_t)k);
	if (n % 2)
		return v[k];
	below = v[0];
	for (size_t i = 1; i < k; i++)
		below = v[i] > below ? v[i] : below;
	return (below + v[k]) / 2;
}

/* Nanoseconds a step of the median live learner; 0 unknown. */
static double find_usual(const struct dl_sync *s)
{
	double *v = dl_alloc_array(s->heres, sizeof *v), m = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->heres; i++)
		if (is_live(s, s->here[i]) && s->here[i]->step_ns > 0)
			v[n++] = s->here[i]->step_ns;
	if (n >= SPEEDS_NEEDED)
		m = median(v, n);
	free(v);
	return m;
}

/* The same, looked for once in as many reports as there are learners. */
static double usual_ns(struct dl_sync *s)
{
	if (s->usual_for) {
		s->usual_for--;
		return s->usual_ns;
	}
	s->usual_ns = find_usual(s);
	s->usual_for = s->heres;
	return s->usual_ns;
}

uint64_t burst(const struct dl_sync *s)
{
	uint64_t steps = 4 * s->config.schedule.h;

	return steps < BURST_LEAST ? BURST_LEAST : steps;
}

/*
 * What silence earned is there for all the reports that were on their way
 * meanwhile, when it was this syncer that stood, or the link, and not the
 * learner: it is not lost with the first of them, but as time goes on.
 */
static double spare(double credit, double most, double passed_ns)
{
	if (credit <= most)
		return credit;
	if (passed_ns >= spare_ns)
		return most;
	return most + (credit - most) * (1 - passed_ns / spare_ns);
}

/*
 * The clock of l, which was known to a syncer that is gone and trained on
 * without one. How long nobody knows, so the clock that it brings counts as far
 * as another's does that came back, too; one that was alone with the syncer is
 * taken at its word.
 */
uint64_t judge_return(const struct dl_sync *s, const struct learner *l)
{
	uint64_t most = s->clock + burst(s);

	if (l->brought <= s->clock)
		return s->clock;
	if (s->learners == 1)
		return l->brought;
	for (size_t i = 0; i < s->learners; i++)
		if (s->learner[i] != l && s->learner[i]->brought > most)
			most = s->learner[i]->brought;
	return l->brought < most ? l->brought : most;
}

/* So that no sum of what many claim runs over. */
static const uint64_t step_tokens_most = UINT64_C(1) << 40;

/*
 * May l report what ev says? A clock rises by one an own step and to the step
 * of each `open`, so ceiling bounds it. Steps themselves may not come faster
 * than --max-rate times the median learner's; some credit is kept over, and
 * silence earns more, as after a partition.
 */
enum dl_refusal judge_step(struct dl_sync *s, const struct learner *l,
	const struct dl_sync_event *ev, double *credit)
{
	double passed = (double)(s->now - l->credit_at), step_ns;
	uint64_t steps;

	if (ev->steps < l->steps || ev->tokens < l->tokens)
		return DL_REFUSED_COUNT;
	steps = ev->steps - l->steps;
	if ((ev->tokens - l->tokens) / step_tokens_most > steps)
		return DL_REFUSED_COUNT;
	if (ev->clock > l->ceiling + steps)
		return DL_REFUSED_CLOCK;
	step_ns = usual_ns(s) / s->config.max_rate;
	if (step_ns <= 0)
		step_ns = FASTEST_NS;
	*credit = spare(*credit, (double)burst(s), passed) + passed / step_ns;
	if ((double)steps > *credit)
		return DL_REFUSED_RATE;
	*credit -= (double)steps;
	/* What nobody could tell yet earns nothing for later. */
	if (step_ns == FASTEST_NS && *credit > (double)burst(s))
		*credit = (double)burst(s);
	return DL_REFUSED_NOT;
}

static int issued(const struct fragment *f, struct dl_version base)
{
	/* Numbers go on across epochs, so none is above the current one. */
	if (!base.epoch || base.number > f->version.number)
		return 0;
	if (base.epoch == f->version.epoch)
		return base.number >= f->origin.number;
	/* Above the origin it is of a history that was lost with a store. */
	return base.epoch < f->version.epoch;
}

/* Of a merged contribution; 0 before the first. */
static double usual_steps(const struct dl_sync *s)
{
	return s->contributions
		       ? (double)s->contributed_steps / (double)s->contributions
		       : 0;
}

static size_t norms_known(const struct fragment *f)
{
	return f->norms < DL_NORMS_KEPT ? f->norms : DL_NORMS_KEPT;
}

/* The norm that a push of so many steps has, by the median norm a step: many
 * steps go farther than few, and during a warm-up the first have few. But not
 * so much farther, where they turn about or go to and fro: a push of few may be
 * as long as a usual one. 0 while too few are known. */
static double usual_norm(
	const struct dl_sync *s, const struct fragment *f, double steps)
{
	double usual = usual_steps(s);
	size_t n = norms_known(f);

	if (n < DL_NORMS_NEEDED)
		return 0;
	return middle(f->sorted, n) * (steps > usual ? steps : usual);
}

void sort_norms(struct fragment *f)
{
	size_t n = norms_known(f);

	memcpy(f->sorted, f->norm, n * sizeof *f->norm);
	qsort(f->sorted, n, sizeof *f->sorted, by_value);
}

/* norm takes the place of the oldest. */
static void keep_sorted(struct fragment *f, double norm)
{
	size_t n = norms_known(f), i = 0;
	double *v = f->sorted;

	if (n < DL_NORMS_KEPT)
		i = n++;
	while (i + 1 < n && v[i] != f->norm[f->norms % n])
		i++;
	for (; i + 1 < n && v[i + 1] < norm; i++)
		v[i] = v[i + 1];
	for (; i > 0 && v[i - 1] > norm; i--)
		v[i] = v[i - 1];
	v[i] = norm;
}

void remember_norm(struct fragment *f, double norm)
{
	keep_sorted(f, norm);
	f->norm[f->norms % DL_NORMS_KEPT] = norm;
	/* Stays congruent when it wraps, and never falls below "full". */
	if (++f->norms == 2 * DL_NORMS_KEPT)
		f->norms = DL_NORMS_KEPT;
}

enum dl_refusal judge_push(const struct dl_sync *s, const struct learner *l,
	const struct dl_sync_event *ev, double *scale)
{
	const struct fragment *f = &s->fragment[ev->fragment];
	double usual = usual_norm(s, f, (double)ev->steps);

	*scale = 1;
	if (s->phase > COLLECTING)
		return DL_REFUSED_END;
	if (!isfinite(ev->norm))
		return DL_REFUSED_FINITE;
	if (!ev->steps || !ev->tokens)
		return DL_REFUSED_EMPTY;
	if (!issued(f, ev->base))
		return DL_REFUSED_BASE;
	if (ev->step > l->ceiling)
		return DL_REFUSED_CLOCK;
	if (ev->steps > l->steps - l->of[ev->fragment].pushed_steps ||
		ev->tokens > l->tokens - l->of[ev->fragment].pushed_tokens)
		return DL_REFUSED_COUNT;
	if (l->of[ev->fragment].kept >= KEPT_MOST &&
		2 * ev->steps < s->config.schedule.h)
		return DL_REFUSED_RATE;
	if (usual > 0 && ev->norm > s->config.refuse_norm * usual)
		return DL_REFUSED_NORM;
	if (usual > 0 && ev->norm > s->config.max_norm * usual)
		*scale = s->config.max_norm * usual / ev->norm;
	return DL_REFUSED_NOT;
}
