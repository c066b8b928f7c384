#include "cmd/stat/summary.h"

#include <inttypes.h>
#include <math.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/stat/put.h"

static double ratio(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static void put_run(struct dl_buf *out, const struct dl_stat *s)
{
	const struct dl_stat_totals *t = &s->totals;
	char time[DL_HUMAN];

	dl_buf_printf(out,
		"run %s: epoch %" PRIu64 ", %" PRIu64 " start%s, %s%s\n",
		s->run, t->epoch, t->starts, t->starts == 1 ? "" : "s",
		dl_human_duration(time, t->last - t->first),
		t->done	    ? ", done"
		: t->ending ? ", ending"
			    : "");
}

static void put_rounds(struct dl_buf *out, const struct dl_stat_totals *t)
{
	double closed = (double)t->closed;

	dl_buf_printf(out,
		"clock %" PRIu64 ", rounds %" PRIu64 ", merges %" PRIu64
		", members %.1f, reports %.1f, h %.1f\n",
		t->clock, t->rounds, t->merges,
		ratio((double)t->members, closed),
		ratio((double)t->reports, closed), isnan(t->h) ? 0 : t->h);
	dl_buf_str(out, "quorum after ");
	put_duration(out, t->quorum_ns, 0);
	dl_buf_str(out, ", grace ");
	put_duration(out, t->grace_ns, 0);
	dl_buf_str(out, ", merge and commit ");
	put_duration(out, t->sync_ns, 0);
	dl_buf_str(out, ", a step ");
	put_duration(out, t->step_ns, 0);
	dl_buf_byte(out, '\n');
}

static void put_work(struct dl_buf *out, const struct dl_stat *s)
{
	const struct dl_stat_member *all = &s->all;

	dl_buf_printf(out,
		"tokens %" PRIu64 ", wasted %" PRIu64 " (%.2f%%), goodput ",
		s->totals.tokens, all->wasted,
		100 * ratio((double)all->wasted, (double)all->tokens));
	put_share(out, s->totals.goodput, 0);
	dl_buf_str(out, ", uptime ");
	put_share(out, s->totals.uptime, 0);
	dl_buf_byte(out, '\n');
}

static void put_way(struct dl_buf *out, const char *way, uint64_t bytes,
	uint64_t elements, double bits)
{
	dl_buf_str(out, way);
	put_bytes(out, bytes, 0);
	dl_buf_printf(out, " (f32: %.2f times as many; ",
		ratio((double)elements * sizeof(float), (double)bytes));
	put_real(out, bits, 2, 0);
	dl_buf_str(out, " bits a value)");
}

void summary_put(struct dl_buf *out, const struct dl_stat *s)
{
	const struct dl_sync_learner_info *all = &s->all.info;

	put_run(out, s);
	put_rounds(out, &s->totals);
	put_work(out, s);
	put_way(out, "bytes up ", all->bytes_up, all->elements_up,
		s->totals.up_bits);
	put_way(out, ", down ", all->bytes_down, all->elements_down,
		s->totals.down_bits);
	dl_buf_byte(out, '\n');
}

void summary_warn(const struct dl_stat *s)
{
	double closed = (double)s->totals.closed;

	if (dl_stat_takes_turns(s))
		cmd_warn("learners only take turns: %.2f of %.2f members "
			 "report in a round; a grace window or a larger "
			 "quorum brings them together",
			(double)s->totals.reports / closed,
			(double)s->totals.members / closed);
}
