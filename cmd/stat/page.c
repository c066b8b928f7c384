#include "cmd/stat/page.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/num.h"
#include "cmd/stat/lanes.h"
#include "cmd/stat/markup.h"
#include "cmd/stat/plots.h"
#include "cmd/stat/put.h"
#include "cmd/stat/sheet.h"
#include "cmd/stat/style.h"

static void put_head(struct dl_buf *out, const struct dl_stat *s)
{
	dl_buf_str(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
			"<meta charset=\"utf-8\">\n"
			"<meta name=\"viewport\" "
			"content=\"width=device-width,initial-scale=1\">\n"
			"<title>");
	markup_text(out, s->run);
	dl_buf_str(out, "</title>\n<style>\n");
	dl_buf_str(out, style);
	dl_buf_str(out, "</style>\n</head>\n<body>\n<main>\n");
}

/* A moment of UTC; the day only where it is another than before. */
static void put_moment(struct dl_buf *out, int64_t wall, int64_t before)
{
	time_t t = (time_t)(wall / DL_SECOND), u = (time_t)(before / DL_SECOND);
	char day[24] = "", old[24] = "", hour[16] = "";
	struct tm tm;

	if (gmtime_r(&u, &tm))
		strftime(old, sizeof old, "%Y-%m-%d ", &tm);
	if (gmtime_r(&t, &tm)) {
		strftime(day, sizeof day, "%Y-%m-%d ", &tm);
		strftime(hour, sizeof hour, "%H:%M:%S", &tm);
	}
	dl_buf_printf(out, "%s%s", strcmp(day, old) != 0 ? day : "", hour);
}

static void put_name(struct dl_buf *out, const struct dl_stat *s)
{
	const struct dl_stat_totals *t = &s->totals;
	const char *state = t->done ? "done" : t->ending ? "ending" : "running";

	dl_buf_str(out, "<header>\n<h1>");
	markup_text(out, s->run);
	dl_buf_printf(out, "<span class=\"badge %s\">%s</span></h1>\n<p>",
		state, state);
	put_count(out, s->members);
	dl_buf_str(out, s->members == 1 ? " learner, " : " learners, ");
	put_count(out, t->fragments);
	dl_buf_str(out, t->fragments == 1 ? " fragment; " : " fragments; ");
	put_moment(out, t->first, 0);
	dl_buf_str(out, " to ");
	put_moment(out, t->last, t->first);
	dl_buf_str(out, " UTC");
	if (t->starts > 1) {
		dl_buf_str(out, "; ");
		put_count(out, t->starts);
		dl_buf_str(out, " starts of the syncer");
	}
	dl_buf_str(out, "</p>\n</header>\n");
}

static void put_tile(
	struct dl_buf *out, double v, enum unit unit, const char *name)
{
	dl_buf_str(out, "<div><b>");
	markup_figure(out, v, unit);
	dl_buf_printf(out, "</b><span>%s</span></div>\n", name);
}

static void put_way(
	struct dl_buf *out, uint64_t bytes, double bits, const char *name)
{
	dl_buf_str(out, "<div><b>");
	markup_figure(out, (double)bytes, UNIT_BYTES);
	dl_buf_printf(out, "</b><span>%s, ", name);
	markup_figure(out, bits, UNIT_NUMBER);
	dl_buf_str(out, " bits/value</span></div>\n");
}

/* The last mean that is known. */
static double last_loss(const struct dl_history *h)
{
	for (size_t i = h->n; i--;)
		if (h->bucket[i].losses)
			return h->bucket[i].loss;
	return NAN;
}

static uint64_t refusals(const struct dl_stat_member *m)
{
	uint64_t n = 0;

	for (int r = DL_REFUSED_NOT + 1; r < DL_REFUSALS; r++)
		n += m->info.refused[r];
	return n;
}

static void put_tiles(struct dl_buf *out, const struct dl_stat *s)
{
	const struct dl_stat_member *all = &s->all;
	const struct dl_stat_totals *t = &s->totals;
	double made = (double)all->tokens;

	dl_buf_str(out, "<section class=\"tiles\">\n");
	put_tile(out, (double)t->tokens, UNIT_NUMBER, "tokens");
	put_tile(out, last_loss(&s->history), UNIT_LOSS, "loss");
	put_tile(out, t->goodput, UNIT_SHARE, "goodput");
	put_tile(out, t->uptime, UNIT_SHARE, "uptime");
	put_tile(out, t->participation, UNIT_SHARE, "participation");
	put_tile(out, t->h, UNIT_NUMBER, "effective H");
	put_tile(out, made > 0 ? (double)all->wasted / made : NAN, UNIT_SHARE,
		"wasted");
	put_tile(out, (double)refusals(all), UNIT_NUMBER, "refused");
	put_tile(out, (double)t->merges, UNIT_NUMBER, "merges");
	put_tile(out, plots_seconds(s), UNIT_TIME, "lasted");
	put_way(out, all->info.bytes_up, t->up_bits, "up");
	put_way(out, all->info.bytes_down, t->down_bits, "down");
	dl_buf_str(out, "</section>\n");
}

static void put_cells(struct dl_buf *out, const struct sheet *sheet,
	const struct dl_stat *s, size_t row)
{
	struct dl_buf cell = DL_BUF_INIT;

	dl_buf_str(out, "<tr>");
	for (size_t c = 0; c < sheet->columns; c++) {
		dl_buf_clear(&cell);
		sheet->column[c].put(&cell, s, row, 0);
		dl_buf_str(out, "<td>");
		markup_text(out, dl_buf_cstr(&cell));
	}
	dl_buf_byte(out, '\n');
	dl_buf_free(&cell);
}

static void put_sheet(
	struct dl_buf *out, const struct sheet *sheet, const struct dl_stat *s)
{
	size_t rows = sheet->rows(s);

	dl_buf_str(out, "<table>\n<thead><tr>");
	for (size_t c = 0; c < sheet->columns; c++)
		dl_buf_printf(out, "<th>%s", sheet->column[c].name);
	dl_buf_str(out, "\n<tbody>\n");
	for (size_t i = 0; i < rows; i++)
		put_cells(out, sheet, s, i);
	dl_buf_str(out, "</table>\n");
}

static void put_details(struct dl_buf *out, const char *name,
	const struct sheet *sheet, const struct dl_stat *s)
{
	dl_buf_printf(
		out, "<details class=\"wide\"><summary>%s</summary>\n", name);
	put_sheet(out, sheet, s);
	dl_buf_str(out, "</details>\n");
}

void page_put(struct dl_buf *out, const struct dl_stat *s)
{
	put_head(out, s);
	put_name(out, s);
	put_tiles(out, s);
	lanes_put(out, s, plots_seconds(s));
	dl_buf_str(out, "<section class=\"charts\">\n");
	plots_put(out, s);
	dl_buf_str(out, "</section>\n");
	put_details(out, "All members", &sheet_members, s);
	put_details(out, "All fragments", &sheet_fragments, s);
	dl_buf_str(out, "<footer>Made by dl-stat.</footer>\n"
			"</main>\n</body>\n</html>\n");
}
