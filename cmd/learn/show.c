#include "cmd/learn/show.h"

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

/* Tokens a second since the last line. */
static double speed(struct learner *l, uint64_t tokens, int64_t now)
{
	double s = (double)(now - l->shown_at) / 1e9;
	double rate = s > 0 ? (double)(tokens - l->shown_tokens) / s : 0;

	l->shown_at = now;
	l->shown_tokens = tokens;
	return rate;
}

static const char *state(const struct learner *l)
{
	if (l->finishing)
		return "ending";
	if (!l->uplink.welcomed)
		return "alone";
	return drain_asked(l) ? "draining" : "in touch";
}

void learner_show(struct learner *l, int asked)
{
	const struct uplink *up = &l->uplink;
	char in[DL_HUMAN], out[DL_HUMAN], loss[16];
	struct dl_learn_info info;

	if (!l->core || (!asked && !cmd_status_due(&l->status)))
		return;
	dl_learn_info(l->core, &info);
	cmd_status_show(&l->status,
		"%s: clock %llu, %llu own steps, %.0f tokens/s, loss %s, "
		"%llu pushes out, sent %s, got %s",
		state(l), (unsigned long long)info.clock,
		(unsigned long long)info.steps, speed(l, info.tokens, dl_now()),
		cmd_status_loss(loss, l->loss),
		(unsigned long long)info.outstanding,
		dl_human_size(out,
			up->bytes_out +
				(up->open ? dl_conn_bytes_out(&up->conn) : 0)),
		dl_human_size(in,
			up->bytes_in +
				(up->open ? dl_conn_bytes_in(&up->conn) : 0)));
}

void learner_show_end(struct learner *l)
{
	if (l->core && cmd_verbosity >= 0)
		learner_show(l, 1);
	cmd_status_end();
}
