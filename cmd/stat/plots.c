#include "cmd/stat/plots.h"

#include <math.h>
#include <stdlib.h>

#include "cmd/stat/chart.h"

enum { POINTS = 256 }; /* more than can be told apart */

/* The history in at most POINTS parts. */
struct points {
	struct dl_history history; /* a copy */
	size_t n;
	double seconds, width;
	double x[POINTS];      /* the middle of each, in seconds */
	double from[POINTS];   /* where it begins */
	double length[POINTS]; /* seconds */
	double tokens[POINTS]; /* that were made up to its middle */
	double y[POINTS], low[POINTS], high[POINTS];
	int charts;
};

double plots_seconds(const struct dl_stat *s)
{
	double width = (double)s->history.width / 1e9;
	double most = (double)s->history.n * width;
	double wall = (double)(s->totals.last - s->totals.first) / 1e9;

	/* Unless the wall clock was set meanwhile. */
	return wall <= most && wall > most - width ? wall : most;
}

static struct points *gather(const struct dl_stat *s)
{
	struct points *p = dl_alloc(sizeof *p);
	double before = 0;

	p->history = s->history;
	while (p->history.n > POINTS)
		dl_history_fold(&p->history);
	p->n = p->history.n;
	p->seconds = plots_seconds(s);
	p->width = (double)p->history.width / 1e9;
	for (size_t i = 0; i < p->n; i++) {
		double end = (double)(i + 1) * p->width;
		double made = (double)p->history.bucket[i].tokens;

		p->from[i] = (double)i * p->width;
		p->length[i] =
			(end < p->seconds ? end : p->seconds) - p->from[i];
		p->x[i] = p->from[i] + p->length[i] / 2;
		p->tokens[i] = before + made / 2;
		before += made;
	}
	return p;
}

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

/* A figure of a part of the history. */
typedef double figure(const struct dl_history_part *b, double seconds);

static double fill(struct points *p, figure *f, double *out)
{
	double most = 0;

	for (size_t i = 0; i < p->n; i++) {
		out[i] = f(p->history.bucket + i, p->length[i]);
		if (out[i] > most)
			most = out[i];
	}
	return most;
}

static double loss(const struct dl_history_part *b, double seconds)
{
	(void)seconds;
	return b->loss;
}

static double loss_least(const struct dl_history_part *b, double seconds)
{
	(void)seconds;
	return b->loss_min;
}

static double loss_most(const struct dl_history_part *b, double seconds)
{
	(void)seconds;
	return b->loss_max;
}

static double took_part(const struct dl_history_part *b, double seconds)
{
	(void)seconds;
	return ratio((double)b->reports, (double)b->members);
}

static double goodput(const struct dl_history_part *b, double seconds)
{
	double kept = b->tokens ? 1 - b->wasted / (double)b->tokens : 1;

	(void)seconds;
	return ratio(b->training_ns, b->due_ns) * (kept > 0 ? kept : 0);
}

static double speed(const struct dl_history_part *b, double seconds)
{
	return ratio((double)b->tokens, seconds);
}

static double up(const struct dl_history_part *b, double seconds)
{
	return ratio((double)b->bytes_up, seconds);
}

static double down(const struct dl_history_part *b, double seconds)
{
	return ratio((double)b->bytes_down, seconds);
}

static double wasted(const struct dl_history_part *b, double seconds)
{
	double share = ratio(b->wasted, (double)b->tokens);

	(void)seconds;
	return share > 1 ? 1 : share;
}

static double refused(const struct dl_history_part *b, double seconds)
{
	(void)seconds;
	return (double)b->refused;
}

/* The range of the means, and a little more; what is outside is cut off. */
static void range_of_loss(const struct points *p, struct chart *c)
{
	double least = INFINITY, most = -INFINITY;

	for (size_t i = 0; i < p->n; i++)
		if (isfinite(p->y[i])) {
			least = fmin(least, p->y[i]);
			most = fmax(most, p->y[i]);
		}
	c->y_min = least - 0.08 * (most - least);
	c->y_max = most + 0.08 * (most - least);
	if (most <= least) {
		c->y_min = least - 0.5;
		c->y_max = most + 0.5;
	}
}

static void put_loss(struct dl_buf *out, struct points *p, const double *x,
	double x_max, enum unit unit, const char *title)
{
	struct chart c = {.title = title,
		.note = "nats; mean of the learners, and their range",
		.x_max = x_max,
		.x_unit = unit,
		.y_unit = UNIT_LOSS,
		.number = p->charts++};

	fill(p, loss, p->y);
	fill(p, loss_least, p->low);
	fill(p, loss_most, p->high);
	range_of_loss(p, &c);
	chart_begin(out, &c);
	chart_area(out, &c, x, p->low, p->high, p->n, "one band");
	chart_line(out, &c, x, p->y, p->n, "one");
	chart_end(out);
}

/* One figure over time, from 0. */
static void put_figure(struct dl_buf *out, struct points *p, figure *f,
	enum unit unit, double least_top, const char *title, const char *note)
{
	struct chart c = {.title = title,
		.note = note,
		.x_max = p->seconds,
		.x_unit = UNIT_TIME,
		.y_unit = unit,
		.number = p->charts++};

	c.y_max = fmax(1.06 * fill(p, f, p->y), least_top);
	chart_begin(out, &c);
	chart_area(out, &c, p->x, NULL, p->y, p->n, "one band");
	chart_line(out, &c, p->x, p->y, p->n, "one");
	chart_end(out);
}

static void put_traffic(struct dl_buf *out, struct points *p)
{
	static const struct chart_key key[] = {
		{"down", "two"}, {"up", "one"}, {NULL, NULL}};
	struct chart c = {.title = "Traffic",
		.note = "bytes a second of pushes and new values",
		.x_max = p->seconds,
		.x_unit = UNIT_TIME,
		.y_unit = UNIT_BYTES,
		.key = key,
		.number = p->charts++};

	c.y_max = 1.06 * fmax(fill(p, up, p->y), fill(p, down, p->high));
	chart_begin(out, &c);
	chart_area(out, &c, p->x, NULL, p->high, p->n, "two band");
	chart_area(out, &c, p->x, NULL, p->y, p->n, "one band");
	chart_line(out, &c, p->x, p->high, p->n, "two");
	chart_line(out, &c, p->x, p->y, p->n, "one");
	chart_end(out);
}

static void put_refused(struct dl_buf *out, struct points *p)
{
	struct chart c = {.title = "Refused",
		.note = "pushes and steps",
		.x_max = p->seconds,
		.x_unit = UNIT_TIME,
		.y_unit = UNIT_NUMBER,
		.number = p->charts++};

	c.y_max = fmax(1.06 * fill(p, refused, p->y), 4);
	chart_begin(out, &c);
	chart_bars(out, &c, p->from, p->y, p->n, p->width, "bad");
	chart_end(out);
}

void plots_put(struct dl_buf *out, const struct dl_stat *s)
{
	struct points *p = gather(s);
	double made = p->n ? p->tokens[p->n - 1] : 0;

	put_loss(out, p, p->x, p->seconds, UNIT_TIME, "Loss over time");
	put_loss(out, p, p->tokens, made, UNIT_NUMBER, "Loss over tokens");
	put_figure(out, p, took_part, UNIT_SHARE, 1.06, "Participation",
		"members of a round that reported in time");
	put_figure(out, p, goodput, UNIT_SHARE, 1.06, "Goodput",
		"useful time, of the time that was to be trained");
	put_figure(out, p, speed, UNIT_NUMBER, 0, "Tokens a second",
		"of all learners");
	put_traffic(out, p);
	put_figure(out, p, wasted, UNIT_SHARE, 0.1, "Wasted",
		"tokens of pushes that came too late");
	put_refused(out, p);
	free(p);
}
