#include "sim/goodput.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "sim/queue.h"

static const double year = 365.25 * 86400;

const char *const dl_goodput_share_names[DL_GOODPUT_SHARES] = {
	"useful", "missing", "down", "up", "away", "slow", "redone"};

struct learner {
	struct dl_rng rng;
	double now;   /* the end of what was simulated */
	double until; /* when it last ended to train */
	int trains;   /* has not come to that yet */
	double chips; /* of a slice */
	uint32_t slices, active;
	double speed, ideal; /* of the slowest; mean of all */
	/* When missing slices are back, oldest first: a ring. */
	double *back;
	uint32_t first, missing;
	uint32_t gathered;		 /* of these are back */
	double since;			 /* ... the first of them since then */
	double share[DL_GOODPUT_SHARES]; /* slice seconds */
	uint64_t failures, changes;
};

void dl_goodput_config_default(struct dl_goodput_config *c)
{
	*c = (struct dl_goodput_config){.learners = 1,
		.quorum = 1,
		.slice = 2000,
		.interrupted = year,
		.step = 5,
		.down = 22,
		.up = 16,
		.back = 67,
		.gather = 110,
		.time = 30 * 86400,
		.seed = 1};
}

static void begin(
	struct learner *l, const struct dl_goodput_config *c, uint32_t nth)
{
	double chips = c->chips / c->learners, sum = 0;

	*l = (struct learner){.rng = {dl_rng_key(c->seed, nth), 0}, .speed = 1};
	l->slices = c->slice < chips ? (uint32_t)(chips / c->slice + 0.5) : 1;
	l->active = l->slices;
	l->chips = chips / l->slices;
	l->back = dl_alloc_array(l->slices, sizeof *l->back);
	for (uint32_t i = 0; i < l->slices; i++) {
		double speed = 1 - c->spread * dl_rng_uniform(&l->rng);

		if (speed < l->speed)
			l->speed = speed;
		sum += speed;
	}
	l->ideal = sum / l->slices;
}

/* Slices that are back by now. */
static void gather(struct learner *l)
{
	while (l->gathered < l->missing) {
		double at = l->back[(l->first + l->gathered) % l->slices];

		if (at > l->now)
			return;
		if (!l->gathered++)
			l->since = at;
	}
}

static void take_in(struct learner *l)
{
	l->first = (l->first + l->gathered) % l->slices;
	l->missing -= l->gathered;
	l->active += l->gathered;
	l->gathered = 0;
}

/* When those that are missing are to be taken in, if nothing else happens. */
static double due(const struct learner *l, const struct dl_goodput_config *c)
{
	if (l->gathered)
		return l->since + c->gather;
	return l->missing ? l->back[l->first] + c->gather : INFINITY;
}

static double draw(struct learner *l, const struct dl_goodput_config *c)
{
	return dl_rng_exponential(&l->rng) * c->interrupted /
	       (l->chips * l->active);
}

/* Interruptions from `at` on, up to the end of the step in hand. */
static void interrupt(struct learner *l, const struct dl_goodput_config *c,
	double at, double end)
{
	while (at <= end && l->active) {
		l->back[(l->first + l->missing++) % l->slices] = at + c->back;
		l->active--;
		l->failures++;
		if (l->active)
			at += draw(l, c);
	}
}

/* Of the time spent on steps, what remains of use. */
static void account(struct learner *l, const struct dl_goodput_config *c,
	double spent, uint32_t active)
{
	double used = spent, every = c->every;

	if (c->checkpoint > 0) {
		if (every <= 0)
			every = sqrt(2 * c->checkpoint * c->interrupted *
				     c->learners / c->chips);
		used = floor(spent / (every + c->checkpoint)) * every;
	}
	l->share[DL_GOODPUT_MISSING] += spent * (l->slices - active);
	l->share[DL_GOODPUT_REDONE] += (spent - used) * active;
	l->share[DL_GOODPUT_SLOW] += used * active * (1 - l->speed / l->ideal);
	l->share[DL_GOODPUT_USEFUL] += used * active * l->speed / l->ideal;
}

/* Steps until a change is due, or the time is over; does it shrink? */
static int train(struct learner *l, const struct dl_goodput_config *c)
{
	double step = c->step / l->speed, failure = l->now + draw(l, c);
	double grow = c->rigid ? INFINITY : due(l, c);
	double next = fmin(fmin(failure, grow), c->time), end = l->now;
	uint32_t active = l->active;

	if (next > l->now)
		end += ceil((next - l->now) / step) * step;
	interrupt(l, c, failure, end);
	end = fmin(end, c->time);
	account(l, c, end - l->now, active);
	l->now = l->until = end;
	return l->active < active;
}

static void stall(struct learner *l, const struct dl_goodput_config *c,
	double until, enum dl_goodput_share cause)
{
	until = fmin(until, c->time);
	if (until <= l->now)
		return;
	l->share[cause] += (until - l->now) * l->slices;
	l->now = until;
}

/* The change at the end of a step. */
static void change(
	struct learner *l, const struct dl_goodput_config *c, int shrinks)
{
	uint32_t last = l->first + l->missing - 1;
	double began;

	l->changes++;
	if (c->rigid)
		stall(l, c, l->back[last % l->slices], DL_GOODPUT_AWAY);
	else if (!l->active)
		stall(l, c, l->back[l->first], DL_GOODPUT_AWAY);
	began = l->now;
	gather(l);
	if (shrinks && l->active && !c->rigid)
		stall(l, c, began + c->down, DL_GOODPUT_DOWN);
	if (l->gathered)
		stall(l, c, began + c->up, DL_GOODPUT_UP);
	take_in(l);
	gather(l);
}

/* Trains, and stalls for what ended that. */
static void go_on(struct learner *l, const struct dl_goodput_config *c)
{
	int shrinks = train(l, c);

	l->trains = 1;
	if (l->now < c->time)
		change(l, c, shrinks);
}

/* Learners one after another as they begin and end to train. */
static double run_all(struct learner *l, const struct dl_goodput_config *c)
{
	static const double ns = 1e9;
	struct dl_queue queue = {0};
	struct learner *next;
	uint32_t training = c->learners;
	int64_t at, before = 0, end = (int64_t)(c->time * ns), up = 0;

	for (uint32_t m = 0; m < c->learners; m++) {
		go_on(&l[m], c);
		dl_queue_put(&queue, (int64_t)(l[m].until * ns), &l[m]);
	}
	while ((next = dl_queue_take(&queue, &at)) && at < end) {
		if (training >= c->quorum)
			up += at - before;
		before = at;
		training += next->trains ? -1 : 1;
		if (next->trains)
			next->trains = 0;
		else
			go_on(next, c);
		dl_queue_put(&queue,
			(int64_t)((next->trains ? next->until : next->now) *
				  ns),
			next);
	}
	if (training >= c->quorum)
		up += end - before;
	dl_queue_release(&queue);
	return (double)up / (double)end;
}

void dl_goodput_run(
	const struct dl_goodput_config *c, struct dl_goodput_result *out)
{
	struct learner *l = dl_alloc_array(c->learners, sizeof *l);

	*out = (struct dl_goodput_result){0};
	for (uint32_t m = 0; m < c->learners; m++)
		begin(&l[m], c, m);
	out->uptime = run_all(l, c);
	for (uint32_t m = 0; m < c->learners; m++) {
		for (int i = 0; i < DL_GOODPUT_SHARES; i++)
			out->share[i] += l[m].share[i] /
					 (c->time * l[m].slices * c->learners);
		out->failures += l[m].failures;
		out->changes += l[m].changes;
		free(l[m].back);
	}
	out->chip_hours =
		out->share[DL_GOODPUT_USEFUL] * c->chips * c->time / 3600;
	free(l);
}
