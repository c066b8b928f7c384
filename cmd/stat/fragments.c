/* The fragments, one a line. */
#include <inttypes.h>
#include <math.h>

#include "cmd/stat/put.h"
#include "cmd/stat/sheet.h"

static size_t rows(const struct dl_stat *s)
{
	return s->totals.fragments;
}

#define PUT(name)                                                              \
	static void put_##name(struct dl_buf *out, const struct dl_stat *s,    \
		size_t row, int exact)

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : NAN;
}

PUT(fragment)
{
	(void)s;
	(void)exact;
	put_count(out, row);
}

PUT(version)
{
	const struct dl_version *v = &s->fragment[row].version;

	(void)exact;
	dl_buf_printf(out, "%" PRIu64 ".%" PRIu64, v->epoch, v->number);
}

PUT(committed)
{
	put_time(out, s->fragment[row].committed, s->totals.last, exact);
}

PUT(rounds)
{
	(void)exact;
	put_count(out, s->fragment[row].rounds);
}

PUT(merges)
{
	(void)exact;
	put_count(out, s->fragment[row].merges);
}

PUT(members)
{
	const struct dl_stat_fragment *f = s->fragment + row;

	put_real(out, ratio((double)f->members, (double)f->closed), 1, exact);
}

PUT(part)
{
	const struct dl_stat_fragment *f = s->fragment + row;

	put_share(out, ratio((double)f->reports, (double)f->members), exact);
}

PUT(open)
{
	const struct dl_stat_fragment *f = s->fragment + row;

	if (f->closed)
		put_duration(out, ratio((double)f->open_ns, (double)f->closed),
			exact);
	else
		dl_buf_byte(out, '-');
}

PUT(norm)
{
	double norm = s->fragment[row].norm;

	if (isnan(norm))
		dl_buf_byte(out, '-');
	else
		dl_buf_printf(out, exact ? "%.9g" : "%.3g", norm);
}

PUT(cosine)
{
	put_real(out, s->fragment[row].alike.mean, 3, exact);
}

PUT(cosine_min)
{
	put_real(out, s->fragment[row].alike.least, 3, exact);
}

static const struct column columns[] = {
	{"fragment", put_fragment},
	{"version", put_version},
	{"committed", put_committed},
	{"rounds", put_rounds},
	{"merges", put_merges},
	{"members", put_members},
	{"took-part", put_part},
	{"open", put_open},
	{"norm", put_norm},
	{"cosine", put_cosine},
	{"cosine-min", put_cosine_min},
};

const struct sheet sheet_fragments = {.name = "fragments",
	.column = columns,
	.columns = sizeof columns / sizeof *columns,
	.words = 0,
	.rows = rows};
