/* What happened when, a bucket a line. */
#include "cmd/stat/put.h"
#include "cmd/stat/sheet.h"

static size_t rows(const struct dl_stat *s)
{
	return s->history.n;
}

#define PUT(name)                                                              \
	static void put_##name(struct dl_buf *out, const struct dl_stat *s,    \
		size_t row, int exact)
#define PUT_COUNT(member)                                                      \
	PUT(member)                                                            \
	{                                                                      \
		(void)exact;                                                   \
		put_count(out, s->history.bucket[row].member);                 \
	}

PUT_COUNT(tokens)
PUT_COUNT(refused)
PUT_COUNT(bytes_up)
PUT_COUNT(bytes_down)
PUT_COUNT(merges)
PUT_COUNT(members)
PUT_COUNT(reports)

/* Where it begins, in seconds after the first line. */
PUT(at)
{
	put_real(out, (double)row * (double)s->history.width / 1e9, 2, exact);
}

PUT(wasted)
{
	put_real(out, s->history.bucket[row].wasted, 0, exact);
}

PUT(loss)
{
	put_real(out, s->history.bucket[row].loss, 3, exact);
}

PUT(least)
{
	put_real(out, s->history.bucket[row].loss_min, 3, exact);
}

PUT(most)
{
	put_real(out, s->history.bucket[row].loss_max, 3, exact);
}

PUT(training)
{
	put_real(out, s->history.bucket[row].training_ns / 1e9, 2, exact);
}

PUT(due)
{
	put_real(out, s->history.bucket[row].due_ns / 1e9, 2, exact);
}

static const struct column columns[] = {
	{"at", put_at},
	{"tokens", put_tokens},
	{"wasted", put_wasted},
	{"loss", put_loss},
	{"loss-min", put_least},
	{"loss-max", put_most},
	{"training", put_training},
	{"due", put_due},
	{"merges", put_merges},
	{"members", put_members},
	{"reports", put_reports},
	{"up", put_bytes_up},
	{"down", put_bytes_down},
	{"refused", put_refused},
};

const struct sheet sheet_history = {.name = "history",
	.column = columns,
	.columns = sizeof columns / sizeof *columns,
	.words = 0,
	.rows = rows};
