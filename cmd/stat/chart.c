#include "cmd/stat/chart.h"

#include <math.h>

enum {
	WIDTH = 560,
	HEIGHT = 232,
	LEFT = 58,
	RIGHT = 548,
	TOP = 40,
	BOTTOM = 204,
	TICKS_X = 6,
	TICKS_Y = 5,
	KEY = 76,
	BRIDGED = 8, /* points without a figure that a line goes over */
};

static double round_step(double least)
{
	double power = pow(10, floor(log10(least)));

	for (int k = 1; k <= 5; k += k == 1 ? 1 : 3)
		if (k * power >= least * 0.999)
			return k * power;
	return 10 * power;
}

static double time_step(double least)
{
	static const double steps[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
		900, 1800, 3600, 7200, 10800, 21600, 43200, 86400};

	if (least <= 1)
		return round_step(least);
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (steps[i] >= least)
			return steps[i];
	return 86400 * round_step(least / 86400);
}

double chart_step(double range, int n, enum unit unit)
{
	return unit == UNIT_TIME ? time_step(range / n) : round_step(range / n);
}

static double x_of(const struct chart *c, double x)
{
	return LEFT + x / c->x_max * (RIGHT - LEFT);
}

static double y_of(const struct chart *c, double y)
{
	return BOTTOM - (y - c->y_min) / (c->y_max - c->y_min) * (BOTTOM - TOP);
}

static void put_label(struct dl_buf *out, double x, double y, const char *class,
	double v, enum unit unit)
{
	dl_buf_printf(
		out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	markup_figure(out, v, unit);
	dl_buf_str(out, "</text>");
}

static void put_axes(struct dl_buf *out, const struct chart *c)
{
	double step = chart_step(c->y_max - c->y_min, TICKS_Y, c->y_unit);

	for (double k = ceil(c->y_min / step - 1e-9);
		k * step <= c->y_max + step * 1e-9; k++) {
		double y = k * step + 0.0, at = y_of(c, y); /* not -0 */

		dl_buf_printf(out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>",
			LEFT, at, RIGHT);
		put_label(out, LEFT - 8, at + 4, "end", y, c->y_unit);
	}
	step = chart_step(c->x_max, TICKS_X, c->x_unit);
	for (double x = 0; x <= c->x_max * (1 + 1e-9); x += step)
		put_label(out, x_of(c, x), BOTTOM + 18, "mid", x, c->x_unit);
	dl_buf_printf(out, "<path class=\"axis\" d=\"M%d %dH%d\"/>\n", LEFT,
		BOTTOM, RIGHT);
}

static void put_key(struct dl_buf *out, const struct chart_key *key)
{
	for (int x = RIGHT - KEY; key && key->name; key++, x -= KEY)
		dl_buf_printf(out,
			"<path class=\"line %s\" d=\"M%d 19h14\"/>"
			"<text class=\"note\" x=\"%d\" y=\"23\">%s</text>\n",
			key->class, x, x + 20, key->name);
}

void chart_begin(struct dl_buf *out, struct chart *c)
{
	if (!isfinite(c->x_max) || c->x_max <= 0)
		c->x_max = 1;
	if (!isfinite(c->y_min))
		c->y_min = 0;
	if (!isfinite(c->y_max) || c->y_max <= c->y_min)
		c->y_max = c->y_min + 1;
	dl_buf_printf(out,
		"<svg class=\"card\" viewBox=\"0 0 %d %d\" role=\"img\" "
		"aria-label=\"%s\">\n"
		"<text class=\"title\" x=\"16\" y=\"24\">%s"
		"<tspan class=\"note\" dx=\"8\">%s</tspan></text>\n"
		"<clipPath id=\"c%d\"><rect x=\"%d\" y=\"%d\" width=\"%d\" "
		"height=\"%d\"/></clipPath>\n",
		WIDTH, HEIGHT, c->title, c->title, c->note, c->number, LEFT,
		TOP - 1, RIGHT - LEFT, BOTTOM - TOP + 2);
	put_key(out, c->key);
	put_axes(out, c);
	dl_buf_printf(out, "<g clip-path=\"url(#c%d)\">\n", c->number);
}

void chart_end(struct dl_buf *out)
{
	dl_buf_str(out, "</g></svg>\n");
}

/* The next point after i with a figure, if the line goes on to it; else n. */
static size_t next_of(const double *y, size_t i, size_t n)
{
	for (size_t k = i + 1; k < n && k <= i + 1 + BRIDGED; k++)
		if (isfinite(y[k]))
			return k;
	return n;
}

static void put_point(struct dl_buf *out, const struct chart *c, int letter,
	double x, double y)
{
	dl_buf_printf(out, "%c%.1f %.1f", letter, x_of(c, x), y_of(c, y));
}

/* The line through the points from i on: the last of them. */
static size_t put_stretch(struct dl_buf *out, const struct chart *c,
	const double *x, const double *y, size_t i, size_t n)
{
	size_t last = i;

	for (int letter = 'M'; i < n; i = next_of(y, i, n), letter = 'L') {
		put_point(out, c, letter, x[i], y[i]);
		last = i;
	}
	return last;
}

void chart_line(struct dl_buf *out, const struct chart *c, const double *x,
	const double *y, size_t n, const char *class)
{
	dl_buf_printf(out, "<path class=\"line %s\" d=\"", class);
	for (size_t i = 0; i < n; i++) {
		size_t first = i;

		if (!isfinite(y[i]))
			continue;
		i = put_stretch(out, c, x, y, i, n);
		if (i == first) /* a point by itself */
			dl_buf_str(out, "h.1");
	}
	dl_buf_str(out, "\"/>\n");
}

void chart_area(struct dl_buf *out, const struct chart *c, const double *x,
	const double *low, const double *y, size_t n, const char *class)
{
	dl_buf_printf(out, "<path class=\"area %s\" d=\"", class);
	for (size_t i = 0; i < n; i++) {
		size_t first = i;

		if (!isfinite(y[i]))
			continue;
		i = put_stretch(out, c, x, y, i, n);
		for (size_t k = i + 1; k-- > first;)
			if (isfinite(y[k]))
				put_point(out, c, 'L', x[k],
					low ? low[k] : c->y_min);
		dl_buf_byte(out, 'Z');
	}
	dl_buf_str(out, "\"/>\n");
}

void chart_bars(struct dl_buf *out, const struct chart *c, const double *x,
	const double *y, size_t n, double width, const char *class)
{
	double wide = width / c->x_max * (RIGHT - LEFT);

	dl_buf_printf(out, "<path class=\"area %s\" d=\"", class);
	for (size_t i = 0; i < n; i++)
		if (y[i] > 0)
			dl_buf_printf(out, "M%.1f %dV%.1fh%.1fV%dZ",
				x_of(c, x[i]), BOTTOM, y_of(c, y[i]),
				wide < 1.5 ? 1.5 : wide, BOTTOM);
	dl_buf_str(out, "\"/>\n");
}
