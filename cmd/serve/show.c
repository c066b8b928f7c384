#include "cmd/serve/show.h"

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
	if (n)
		sums.loss /= (double)n;
	return sums;
}

/* ", 2m05s left" when the budget of tokens says so. */
static void print_left(
	const struct server *s, uint64_t tokens, double rate, char out[48])
{
	uint64_t budget = s->options->config.budget_tokens;
	char left[DL_HUMAN];

	*out = '\0';
	if (budget > tokens && rate > 0)
		snprintf(out, 48, ", %s left",
			dl_human_duration(
				left, (int64_t)((double)(budget - tokens) /
						rate * 1e9)));
}

void server_show(struct server *s, int asked)
{
	char in[DL_HUMAN], out[DL_HUMAN], left[48];
	uint64_t got = s->bytes_in, sent = s->bytes_out;
	struct dl_sync_info info;
	struct sums sums;
	double rate;

	if (!asked && !cmd_status_due(&s->status))
		return;
	dl_sync_info(s->core, &info);
	sums = add_up(s);
	for (const struct peer *peer = s->peer; peer; peer = peer->next) {
		got += peer->over ? 0 : peer->conn.bytes_in;
		sent += peer->over ? 0 : peer->conn.bytes_out;
	}
	rate = speed(s, info.tokens, dl_now());
	print_left(s, info.tokens, rate, left);
	cmd_status_show(&s->status,
		"clock %llu, %zu of %zu learners live, %llu tokens, "
		"%.0f tokens/s, loss %.4f, %llu merges, participation %.2f, "
		"effective H %.1f, %llu tokens wasted, %llu refused, got %s, "
		"sent %s%s",
		(unsigned long long)info.clock, info.live, info.learners,
		(unsigned long long)info.tokens, rate, sums.loss,
		(unsigned long long)info.merges, info.participation,
		info.effective_h, (unsigned long long)sums.late_tokens / info.fragments,
		(unsigned long long)sums.refused, dl_human_size(in, got),
		dl_human_size(out, sent), left);
}

void server_show_end(struct server *s)
{
	if (s->core && cmd_verbosity >= 0)
		server_show(s, 1);
	cmd_status_end();
}
