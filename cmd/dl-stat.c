/*
 * dl-stat: what a run has done, from its tape.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "state/stat.h"

static const char usage[] =
	"usage: dl-stat [-t] TAPE\n"
	"  -t, --tsv  the members only, with tabs between columns\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

/* A line of the table: a member, or the sum of all. */
struct row {
	const struct dl_stat_member *m;
	const char *state;
	double rate;  /* steps a second */
	double h;     /* steps a merge */
	int64_t last; /* wall time at which the tape ends */
	uint32_t fragments;
};

static void put_name(struct dl_buf *out, const struct row *r, int exact)
{
	(void)exact;
	dl_buf_str(out, r->m->name);
}

static void put_state(struct dl_buf *out, const struct row *r, int exact)
{
	(void)exact;
	dl_buf_str(out, r->state);
}

static void put_rate(struct dl_buf *out, const struct row *r, int exact)
{
	dl_buf_printf(out, exact ? "%.6g" : "%.2f", r->rate);
}

static void put_share(struct dl_buf *out, const struct row *r, int exact)
{
	double share = (double)r->m->info.reported / (double)r->m->info.rounds;

	if (!r->m->info.rounds)
		dl_buf_byte(out, '-');
	else if (exact)
		dl_buf_printf(out, "%.6g", share);
	else
		dl_buf_printf(out, "%.0f%%", 100 * share);
}

/* A push carries one fragment of so many: what is lost with it is that part of
 * what its tokens did. */
static uint64_t wasted(const struct row *r)
{
	return r->fragments ? r->m->info.late_tokens / r->fragments : 0;
}

static void put_wasted(struct dl_buf *out, const struct row *r, int exact)
{
	(void)exact;
	dl_buf_printf(out, "%" PRIu64, wasted(r));
}

static void put_h(struct dl_buf *out, const struct row *r, int exact)
{
	if (r->h > 0)
		dl_buf_printf(out, exact ? "%.6g" : "%.1f", r->h);
	else
		dl_buf_byte(out, '-');
}

static void put_refused(struct dl_buf *out, const struct row *r, int exact)
{
	size_t before = out->len;

	(void)exact;
	for (int i = DL_REFUSED_NOT + 1; i < DL_REFUSALS; i++)
		if (r->m->info.refused[i])
			dl_buf_printf(out, "%s%s:%" PRIu64,
				out->len > before ? "," : "",
				dl_refusal_name((enum dl_refusal)i),
				r->m->info.refused[i]);
	if (out->len == before)
		dl_buf_byte(out, '-');
}

static void put_seen(struct dl_buf *out, const struct row *r, int exact)
{
	char text[DL_HUMAN];
	time_t t = (time_t)(r->m->seen / DL_SECOND);
	struct tm tm;

	if (!r->m->seen || !gmtime_r(&t, &tm))
		dl_buf_byte(out, '-');
	else if (exact &&
		 strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		dl_buf_str(out, text);
	else
		dl_buf_str(out, dl_human_duration(text, r->last - r->m->seen));
}

static void put_loss(struct dl_buf *out, const struct row *r, int exact)
{
	if (isnan(r->m->info.loss))
		dl_buf_byte(out, '-');
	else
		dl_buf_printf(out, exact ? "%.9g" : "%.3f", r->m->info.loss);
}

static void put_bytes(struct dl_buf *out, uint64_t bytes, int exact)
{
	char text[DL_HUMAN];

	if (exact)
		dl_buf_printf(out, "%" PRIu64, bytes);
	else
		dl_buf_str(out, dl_human_size(text, bytes));
}

/* How many times more f32 would be. */
static void put_times(
	struct dl_buf *out, uint64_t elements, uint64_t bytes, int exact)
{
	double times = (double)elements * sizeof(float) / (double)bytes;

	if (bytes)
		dl_buf_printf(out, exact ? "%.6g" : "%.2f", times);
	else
		dl_buf_byte(out, '-');
}

static void put_up(struct dl_buf *out, const struct row *r, int exact)
{
	put_bytes(out, r->m->info.bytes_up, exact);
}

static void put_down(struct dl_buf *out, const struct row *r, int exact)
{
	put_bytes(out, r->m->info.bytes_down, exact);
}

static void put_up_times(struct dl_buf *out, const struct row *r, int exact)
{
	put_times(out, r->m->info.elements_up, r->m->info.bytes_up, exact);
}

static void put_down_times(struct dl_buf *out, const struct row *r, int exact)
{
	put_times(out, r->m->info.elements_down, r->m->info.bytes_down, exact);
}

static const struct {
	const char *name;
	void (*put)(struct dl_buf *out, const struct row *r, int exact);
	size_t count; /* without put: where a member has the number */
} columns[] = {
	{"name", put_name, 0},
	{"state", put_state, 0},
	{"steps", NULL, offsetof(struct dl_stat_member, steps)},
	{"clock", NULL, offsetof(struct dl_stat_member, info.clock)},
	{"tokens", NULL, offsetof(struct dl_stat_member, tokens)},
	{"steps/s", put_rate, 0},
	{"rounds", NULL, offsetof(struct dl_stat_member, info.rounds)},
	{"took-part", put_share, 0},
	{"h", put_h, 0},
	{"pushes", NULL, offsetof(struct dl_stat_member, info.pushes)},
	{"late", NULL, offsetof(struct dl_stat_member, info.late_pushes)},
	{"wasted", put_wasted, 0},
	{"refused", put_refused, 0},
	{"seen", put_seen, 0},
	{"loss", put_loss, 0},
	{"up", put_up, 0},
	{"up-x", put_up_times, 0},
	{"down", put_down, 0},
	{"down-x", put_down_times, 0},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void put_cell(struct dl_buf *out, int c, const struct row *r, int exact)
{
	if (columns[c].put)
		columns[c].put(out, r, exact);
	else
		dl_buf_printf(out, "%" PRIu64,
			*(const uint64_t *)((const char *)r->m +
					    columns[c].count));
}

static struct row member_row(
	const struct dl_stat *s, const struct dl_stat_member *m)
{
	struct row r = {.m = m,
		.state = "gone",
		.last = s->last,
		.fragments = s->info.fragments};

	if (m->info.connected)
		r.state = m->info.stalled ? "stalled" : "here";
	if (m->here_ns > 0)
		r.rate = (double)m->steps * 1e9 / (double)m->here_ns;
	if (m->info.merged_pushes)
		r.h = (double)m->info.merged_steps /
		      (double)m->info.merged_pushes;
	return r;
}

/* All members as one, under a name that no learner can have. */
static struct row total_row(const struct dl_stat *s, struct dl_stat_member *sum)
{
	struct row r = {.m = sum,
		.state = "-",
		.last = s->last,
		.fragments = s->info.fragments};

	dl_stat_total(s, sum);
	for (size_t i = 0; i < s->members; i++)
		r.rate += member_row(s, s->member + i).rate;
	r.h = dl_stat_effective_h(s);
	return r;
}

static void put_tsv(struct dl_buf *out, const struct dl_stat *s)
{
	struct dl_stat_member sum;

	for (int c = 0; c < COLUMNS; c++)
		dl_buf_printf(out, "%s%s", c ? "\t" : "# ", columns[c].name);
	dl_buf_byte(out, '\n');
	for (size_t i = 0; i <= s->members; i++) {
		struct row r = i < s->members ? member_row(s, s->member + i)
					      : total_row(s, &sum);

		for (int c = 0; c < COLUMNS; c++) {
			if (c)
				dl_buf_byte(out, '\t');
			put_cell(out, c, &r, 1);
		}
		dl_buf_byte(out, '\n');
	}
}

/* Column c of row i, counted from the titles, as text for eyes. */
static const char *text_of(
	const struct dl_stat *s, size_t i, int c, struct dl_buf *cell)
{
	struct dl_stat_member sum;
	struct row r;

	dl_buf_clear(cell);
	if (!i)
		return columns[c].name;
	r = i <= s->members ? member_row(s, s->member + i - 1)
			    : total_row(s, &sum);
	put_cell(cell, c, &r, 0);
	return dl_buf_cstr(cell);
}

/* Words to the left, numbers to the right, as wide as they must be. */
static void put_columns(struct dl_buf *out, const struct dl_stat *s)
{
	struct dl_buf cell = DL_BUF_INIT;
	int width[COLUMNS] = {0};

	for (size_t i = 0; i < s->members + 2; i++)
		for (int c = 0; c < COLUMNS; c++) {
			int n = (int)strlen(text_of(s, i, c, &cell));

			if (n > width[c])
				width[c] = n;
		}
	for (size_t i = 0; i < s->members + 2; i++)
		for (int c = 0; c < COLUMNS; c++)
			dl_buf_printf(out, "%*s%s",
				c < 2 ? -width[c] : width[c],
				text_of(s, i, c, &cell),
				c + 1 < COLUMNS ? "  " : "\n");
	dl_buf_free(&cell);
}

static void put_traffic(struct dl_buf *out, const struct row *total)
{
	dl_buf_str(out, "bytes up ");
	put_up(out, total, 0);
	dl_buf_str(out, " (f32: ");
	put_up_times(out, total, 0);
	dl_buf_str(out, " times as many), down ");
	put_down(out, total, 0);
	dl_buf_str(out, " (");
	put_down_times(out, total, 0);
	dl_buf_str(out, " times)\n\n");
}

static void put_table(struct dl_buf *out, const struct dl_stat *s)
{
	double members, reports;
	struct dl_stat_member sum;
	char time[DL_HUMAN];
	struct row total = total_row(s, &sum);

	dl_stat_turnout(s, &members, &reports);
	dl_buf_printf(out,
		"run %s: epoch %" PRIu64 ", %" PRIu64 " start%s, %s%s\n",
		s->run, s->info.epoch, s->starts, s->starts == 1 ? "" : "s",
		dl_human_duration(time, s->last - s->first),
		s->info.done	 ? ", done"
		: s->info.ending ? ", ending"
				 : "");
	dl_buf_printf(out,
		"clock %" PRIu64 ", rounds %" PRIu64 ", merges %" PRIu64
		", members %.1f, reports %.1f, h %.1f\n",
		s->info.clock, s->info.rounds, s->info.merges, members, reports,
		dl_stat_effective_h(s));
	dl_buf_printf(out,
		"tokens %" PRIu64 ", wasted %" PRIu64 " (%.2f%%)\n",
		s->info.tokens, wasted(&total),
		sum.tokens ? 100 * (double)wasted(&total) / (double)sum.tokens
			   : 0);
	put_traffic(out, &total);
	put_columns(out, s);
}

/* With so few reports a round, each learner merges by itself in turn, and no
 * more is learned from several than from one. */
static void warn_of_turns(const struct dl_stat *s)
{
	double members, reports;

	dl_stat_turnout(s, &members, &reports);
	if (s->info.merges >= 10 && members >= 1.5 &&
		reports < 1 + 0.1 * (members - 1))
		cmd_warn("learners only take turns: %.2f of %.2f members "
			 "report in a round; a grace window or a larger "
			 "quorum brings them together",
			reports, members);
}

static int read_tape(
	struct dl_stat *s, int fd, const char *place, struct dl_err *e)
{
	struct dl_tape_reader r;
	struct dl_tape_line l = {0};
	int rc;

	dl_tape_reader_init(&r, fd, place);
	while (!(rc = dl_tape_next(&r, &l, e)))
		dl_stat_line(s, &l);
	if (rc == DL_NO && r.torn)
		cmd_note("%s: the last line is torn; left out", place);
	dl_tape_line_release(&l);
	dl_tape_reader_release(&r);
	dl_stat_end(s);
	return rc == DL_NO ? 0 : rc;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"tsv", no_argument, NULL, 't'}, CMD_LONG, {0}};
	struct dl_buf out = DL_BUF_INIT;
	struct dl_stat s;
	struct dl_err e;
	int opt, tsv = 0, fd = STDIN_FILENO, rc = 0;
	const char *place = "standard input";

	cmd_init("dl-stat", usage);
	while ((opt = getopt_long(argc, argv, "t" CMD_SHORT, options, NULL)) !=
		-1)
		if (opt == 't')
			tsv = 1;
		else
			cmd_common_option(opt);
	if (optind + 1 != argc)
		cmd_usage("name one tape, or - for standard input");
	if (strcmp(argv[optind], "-") != 0) {
		place = argv[optind];
		rc = dl_open_read(place, &fd, &e);
	}
	dl_stat_init(&s);
	if (!rc)
		rc = read_tape(&s, fd, place, &e);
	if (!rc && !s.starts)
		rc = dl_fail(&e, DL_DATA, "%s: no start of a run in it", place);
	if (!rc) {
		warn_of_turns(&s);
		(tsv ? put_tsv : put_table)(&out, &s);
		rc = dl_write_file("-", out.data, out.len, &e);
	}
	dl_stat_release(&s);
	dl_buf_free(&out);
	return rc ? cmd_fail(&e) : 0;
}
