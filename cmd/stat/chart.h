/*
 * A chart as inline SVG: axes with round figures, and what is drawn between
 * them.
 */
#ifndef CMD_STAT_CHART_H
#define CMD_STAT_CHART_H

#include <stddef.h>

#include "cmd/stat/markup.h"

/* What a class stands for. */
struct chart_key {
	const char *name, *class;
};

struct chart {
	const char *title, *note; /* what the ordinate is */
	double x_max;		  /* abscissae begin at 0 */
	double y_min, y_max;
	enum unit x_unit, y_unit;
	const struct chart_key *key; /* from the right, up to one without a
				      * name; NULL: one thing is to be seen */
	int number;		     /* on the page */
};

/* Ranges that are empty or not finite become such that can be drawn. */
void chart_begin(struct dl_buf *out, struct chart *c);
void chart_end(struct dl_buf *out);

/* Between begin and end: n points by rising x; a line goes over
 * a few that are NaN, more are a gap.
 * The class is the style sheet's. */
void chart_line(struct dl_buf *out, const struct chart *c, const double *x,
	const double *y, size_t n, const char *class);
/* The same filled, down to another line; low NULL: to the axis. */
void chart_area(struct dl_buf *out, const struct chart *c, const double *x,
	const double *low, const double *y, size_t n, const char *class);
/* A bar from x to x + width each, unless y is 0. */
void chart_bars(struct dl_buf *out, const struct chart *c, const double *x,
	const double *y, size_t n, double width, const char *class);
/* The distance of round figures of which about n fit into range. */
double chart_step(double range, int n, enum unit unit);

#endif
