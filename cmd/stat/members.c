/* The members, one a line, and the sum of all. */
#include <math.h>

#include "cmd/stat/put.h"
#include "cmd/stat/sheet.h"

static size_t rows(const struct dl_stat *s)
{
	return s->members + 1;
}

static const struct dl_stat_member *at(const struct dl_stat *s, size_t row)
{
	return row < s->members ? s->member + row : &s->all;
}

#define PUT(name)                                                              \
	static void put_##name(struct dl_buf *out, const struct dl_stat *s,    \
		size_t row, int exact)
#define PUT_COUNT(name, member)                                                \
	PUT(name)                                                              \
	{                                                                      \
		(void)exact;                                                   \
		put_count(out, at(s, row)->member);                            \
	}

PUT_COUNT(steps, steps)
PUT_COUNT(clock, clock)
PUT_COUNT(tokens, tokens)
PUT_COUNT(rounds, info.rounds)
PUT_COUNT(pushes, info.pushes)
PUT_COUNT(late, info.late_pushes)
PUT_COUNT(wasted, wasted)

PUT(name)
{
	(void)exact;
	dl_buf_str(out, at(s, row)->name);
}

/* Here, to members: whether joining or training. */
PUT(state)
{
	enum dl_stat_state state = at(s, row)->state;

	(void)exact;
	if (row == s->members)
		dl_buf_byte(out, '-');
	else
		dl_buf_str(out, dl_stat_state_words[state]);
}

PUT(rate)
{
	put_real(out, at(s, row)->rate, 2, exact);
}

PUT(part)
{
	const struct dl_stat_member *m = at(s, row);

	put_share(out,
		m->info.rounds
			? (double)m->info.reported / (double)m->info.rounds
			: NAN,
		exact);
}

PUT(h)
{
	const struct dl_stat_member *m = at(s, row);
	double h = s->totals.h;

	if (row < s->members)
		h = m->info.merged_pushes
			    ? (double)m->info.merged_steps /
				      (double)m->info.merged_pushes
			    : NAN;
	put_real(out, h, 1, exact);
}

PUT(refused)
{
	const uint64_t *refused = at(s, row)->info.refused;
	size_t before = out->len;

	(void)exact;
	for (int i = DL_REFUSED_NOT + 1; i < DL_REFUSALS; i++) {
		if (!refused[i])
			continue;
		if (out->len > before)
			dl_buf_byte(out, ',');
		dl_buf_str(out, dl_refusal_name((enum dl_refusal)i));
		dl_buf_byte(out, ':');
		put_count(out, refused[i]);
	}
	if (out->len == before)
		dl_buf_byte(out, '-');
}

PUT(seen)
{
	put_time(out, at(s, row)->seen, s->totals.last, exact);
}

PUT(loss)
{
	put_real(out, at(s, row)->loss, 3, exact);
}

PUT(up)
{
	put_bytes(out, at(s, row)->info.bytes_up, exact);
}

PUT(down)
{
	put_bytes(out, at(s, row)->info.bytes_down, exact);
}

/* How many times more f32 would be. */
static void put_times(
	struct dl_buf *out, uint64_t elements, uint64_t bytes, int exact)
{
	put_real(out,
		bytes ? (double)elements * sizeof(float) / (double)bytes : NAN,
		2, exact);
}

PUT(up_times)
{
	const struct dl_stat_member *m = at(s, row);

	put_times(out, m->info.elements_up, m->info.bytes_up, exact);
}

PUT(down_times)
{
	const struct dl_stat_member *m = at(s, row);

	put_times(out, m->info.elements_down, m->info.bytes_down, exact);
}

PUT(lag)
{
	if (row < s->members)
		put_count(out, at(s, row)->lag);
	else
		dl_buf_byte(out, '-');
	(void)exact;
}

PUT(weight)
{
	put_share(out, at(s, row)->share, exact);
}

static const struct column columns[] = {
	{"name", put_name},
	{"state", put_state},
	{"steps", put_steps},
	{"clock", put_clock},
	{"tokens", put_tokens},
	{"steps/s", put_rate},
	{"rounds", put_rounds},
	{"took-part", put_part},
	{"h", put_h},
	{"pushes", put_pushes},
	{"late", put_late},
	{"wasted", put_wasted},
	{"refused", put_refused},
	{"seen", put_seen},
	{"loss", put_loss},
	{"up", put_up},
	{"up-x", put_up_times},
	{"down", put_down},
	{"down-x", put_down_times},
	{"lag", put_lag},
	{"weight", put_weight},
};

const struct sheet sheet_members = {.name = "members",
	.column = columns,
	.columns = sizeof columns / sizeof *columns,
	.words = 2,
	.rows = rows};
