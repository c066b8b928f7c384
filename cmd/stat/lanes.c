#include "cmd/stat/lanes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/stat/chart.h"
#include "cmd/stat/put.h"
#include "cmd/stat/spans.h"

enum {
	WIDTH = 1136,
	RIGHT = 1076,
	TOP = 46,
	TICKS = 10,
	LETTER = 7,	/* the width of one */
	NAME_MOST = 24, /* letters of a name */
	NAMED = 10,	/* the least height of a lane that has its own name */
};

struct lanes {
	const struct dl_stat *stat;
	double seconds;
	int left, pitch; /* where they begin, and from one to the next */
};

static int pitch_for(size_t members)
{
	return members <= 8 ? 26 : members <= 24 ? 18 : members <= 80 ? 12 : 6;
}

static double x_of(const struct lanes *l, double seconds)
{
	if (seconds > l->seconds)
		seconds = l->seconds;
	return l->left + seconds / l->seconds * (RIGHT - l->left);
}

static void put_state(struct dl_buf *out, const struct lanes *l, size_t i,
	enum dl_stat_state state)
{
	double width = (double)l->stat->history.width / 1e9;
	int gap = l->pitch > 8 ? l->pitch / 6 : 1;
	int y = TOP + (int)i * l->pitch, any = 0;
	struct span span = {0};

	while (span_next(l->stat->member + i, &span)) {
		double from, to;

		if (span.state != state)
			continue;
		if (!any++)
			dl_buf_printf(out, "<path class=\"%s\" d=\"",
				dl_stat_state_words[state]);
		from = x_of(l, (double)span.first * width);
		to = x_of(l, (double)span.end * width);
		if (to < from + 1)
			to = from + 1; /* short, but there */
		dl_buf_printf(out, "M%.1f %dH%.1fv%dH%.1fz", from, y + gap, to,
			l->pitch - 2 * gap, from);
	}
	if (any)
		dl_buf_str(out, "\"/>");
}

/* For who points at the lane. */
static void put_story(struct dl_buf *out, const struct dl_stat_member *m)
{
	dl_buf_str(out, "<title>");
	markup_text(out, m->name);
	for (int k = DL_STAT_AWAY; k < DL_STAT_STATES; k++) {
		if (!m->ns[k])
			continue;
		dl_buf_printf(out, ", %s ", dl_stat_state_words[k]);
		markup_figure(out, (double)m->ns[k] / 1e9, UNIT_TIME);
	}
	dl_buf_str(out, ", joined ");
	put_count(out, m->joins);
	dl_buf_str(out, m->joins == 1 ? " time</title>" : " times</title>");
}

static double useful(const struct dl_stat_member *m)
{
	const int64_t *ns = m->ns;
	double due = (double)(ns[DL_STAT_AWAY] + ns[DL_STAT_JOINING] +
			      ns[DL_STAT_TRAINING] + ns[DL_STAT_STALLED]);

	return due > 0 ? (double)ns[DL_STAT_TRAINING] / due : NAN;
}

static void put_names(struct dl_buf *out, const struct lanes *l, size_t i)
{
	const struct dl_stat_member *m = l->stat->member + i;
	double y = TOP + ((double)i + 0.5) * l->pitch + 4;
	char name[NAME_MOST + 1];

	snprintf(name, sizeof name, "%.*s", (int)NAME_MOST, m->name);
	dl_buf_printf(out, "<text class=\"name\" x=\"16\" y=\"%.1f\">", y);
	markup_text(out, name);
	if (m->name[strlen(name)])
		dl_buf_str(out, "\xe2\x80\xa6");
	dl_buf_printf(out, "</text><text class=\"end\" x=\"%d\" y=\"%.1f\">",
		RIGHT + 44, y);
	markup_figure(out, useful(m), UNIT_SHARE);
	dl_buf_str(out, "</text>");
}

static void put_lane(struct dl_buf *out, const struct lanes *l, size_t i)
{
	dl_buf_str(out, "<g>");
	put_story(out, l->stat->member + i);
	put_state(out, l, i, DL_STAT_GONE);
	put_state(out, l, i, DL_STAT_TRAINING);
	put_state(out, l, i, DL_STAT_JOINING);
	put_state(out, l, i, DL_STAT_STALLED);
	put_state(out, l, i, DL_STAT_AWAY);
	if (l->pitch >= NAMED)
		put_names(out, l, i);
	dl_buf_str(out, "</g>\n");
}

static void put_axis(struct dl_buf *out, const struct lanes *l, int bottom)
{
	double step = chart_step(l->seconds, TICKS, UNIT_TIME);

	for (double t = 0; t <= l->seconds; t += step) {
		dl_buf_printf(out,
			"<path class=\"grid\" d=\"M%.1f %dV%d\"/>"
			"<text class=\"mid\" x=\"%.1f\" y=\"%d\">",
			x_of(l, t), TOP - 4, bottom, x_of(l, t), bottom + 18);
		markup_figure(out, t, UNIT_TIME);
		dl_buf_str(out, "</text>");
	}
	dl_buf_byte(out, '\n');
}

static void put_key(struct dl_buf *out)
{
	static const enum dl_stat_state shown[] = {DL_STAT_GONE, DL_STAT_AWAY,
		DL_STAT_STALLED, DL_STAT_JOINING, DL_STAT_TRAINING};
	int x = RIGHT + 44;

	for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
		const char *word = dl_stat_state_words[shown[i]];

		x -= 32 + LETTER * (int)strlen(word);
		dl_buf_printf(out,
			"<path class=\"%s\" d=\"M%d 14h12v10h-12z\"/>"
			"<text class=\"note\" x=\"%d\" y=\"23\">%s</text>",
			word, x, x + 17, word);
	}
	dl_buf_byte(out, '\n');
}

static int names_width(const struct dl_stat *s)
{
	size_t most = 4;

	for (size_t i = 0; i < s->members; i++)
		if (strlen(s->member[i].name) > most)
			most = strlen(s->member[i].name);
	return LETTER * (int)(most < NAME_MOST ? most : NAME_MOST + 1);
}

void lanes_put(struct dl_buf *out, const struct dl_stat *s, double seconds)
{
	struct lanes l = {
		s, seconds > 0 ? seconds : 1, 32, pitch_for(s->members)};
	int bottom = TOP + (int)s->members * l.pitch;

	if (l.pitch >= NAMED)
		l.left += names_width(s);
	dl_buf_printf(out,
		"<svg class=\"card\" viewBox=\"0 0 %d %d\" role=\"img\" "
		"aria-label=\"What each learner did when\">\n"
		"<text class=\"title\" x=\"16\" y=\"24\">Learners"
		"<tspan class=\"note\" dx=\"8\">%sat the right, how much of "
		"its time each trained</tspan></text>\n",
		WIDTH, bottom + 30,
		s->totals.starts > 1 ? "gaps: the syncer was away; " : "");
	put_key(out);
	put_axis(out, &l, bottom);
	for (size_t i = 0; i < s->members; i++)
		put_lane(out, &l, i);
	dl_buf_str(out, "</svg>\n");
}
