#include "cmd/serve/show.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/server.h"

/* Tokens a second since the last line. */
static double speed(struct server *s, uint64_t tokens, int64_t now)
{
	double seconds = (double)(now - s->shown_at) / 1e9;
	double rate =
		seconds > 0 ? (double)(tokens - s->shown_tokens) / seconds : 0;

	s->shown_at = now;
	s->shown_tokens = tokens;
	return rate;
}

struct sums {
	uint64_t late_tokens, refused;
	double loss;
};

static struct sums add_up(const struct server *s)
{
	struct sums sums = {0, 0, 0};
	struct dl_sync_learner_info l;
	size_t n = 0;

	for (size_t i = 0; dl_sync_learner(s->core, i, &l); i++) {
		sums.late_tokens += l.late_tokens;
		for (int r = 1; r < DL_REFUSALS; r++)
			sums.refused += l.refused[r];
		if (l.connected && l.loss == l.loss) {
			sums.loss += l.loss;
			n++;
		}
	}
	sums.loss = n ? sums.loss / (double)n : NAN;
	return sums;
}

/* "2m05s left, " when a budget says so. */
static char *left(char out[48], const struct server *s,
	const struct dl_sync_info *info, double rate)
{
	const struct dl_sync_config *c = &s->options->sync.config;
	char time[DL_HUMAN];
	double ns = 0;

	*out = '\0';
	if (c->budget_tokens > info->tokens && rate > 0)
		ns = (double)(c->budget_tokens - info->tokens) / rate * 1e9;
	else if (c->budget_steps > info->clock)
		ns = (double)(c->budget_steps - info->clock) * info->step_ns;
	if (ns > 0 && ns < 1e18)
		snprintf(out, 48, "%s left, ",
			dl_human_duration(time, (int64_t)ns));
	return out;
}

void server_show(struct server *s, int asked)
{
	char in[DL_HUMAN], out[DL_HUMAN], time[48], loss[16];
	uint64_t got = s->bytes_in, sent = s->bytes_out;
	struct dl_sync_info info;
	struct sums sums;
	double rate;

	if (!asked && !cmd_status_due(&s->status))
		return;
	dl_sync_info(s->core, &info);
	sums = add_up(s);
	for (const struct peer *peer = s->peer; peer; peer = peer->next) {
		got += peer->over ? 0 : dl_conn_bytes_in(&peer->conn);
		sent += peer->over ? 0 : dl_conn_bytes_out(&peer->conn);
	}
	rate = speed(s, info.tokens, dl_now());
	cmd_status_show(&s->status,
		"clock %llu, %zu of %zu learners live, loss %s, "
		"%.0f tokens/s, %sparticipation %.2f, effective H %.1f, "
		"%llu merges, %llu tokens, %llu wasted, %llu refused, got %s, "
		"sent %s",
		(unsigned long long)info.clock, info.live, info.learners,
		cmd_status_loss(loss, sums.loss), rate,
		left(time, s, &info, rate), info.participation,
		info.effective_h, (unsigned long long)info.merges,
		(unsigned long long)info.tokens,
		(unsigned long long)sums.late_tokens / info.fragments,
		(unsigned long long)sums.refused, dl_human_size(in, got),
		dl_human_size(out, sent));
}

void server_show_end(struct server *s)
{
	if (s->core && cmd_verbosity >= 0)
		server_show(s, 1);
	cmd_status_end();
}
