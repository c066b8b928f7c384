#include "cmd/stat/prometheus.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* How a figure is kept; times become seconds. */
enum kind { COUNT, TIME, REAL, REAL_TIME, NUMBER };

struct metric {
	const char *name, *help;
	enum kind kind;
	size_t at;
};

#define RUN(name, kind, member, help)                                          \
	{                                                                      \
		name, help, kind, offsetof(struct dl_stat_totals, member)      \
	}
static const struct metric run_metrics[] = {
	RUN("dl_run_starts_total", COUNT, starts, "Starts of the syncer."),
	RUN("dl_run_clock_steps", COUNT, clock, "Highest clock of a learner."),
	RUN("dl_run_tokens_total", COUNT, tokens,
		"Tokens counted since the run began."),
	RUN("dl_run_rounds_total", COUNT, rounds, "Rounds opened."),
	RUN("dl_run_merges_total", COUNT, merges, "Merges committed."),
	RUN("dl_run_round_members_total", COUNT, members,
		"Members of rounds that have closed."),
	RUN("dl_run_round_reports_total", COUNT, reports,
		"Those of them that reported in time."),
	RUN("dl_run_participation_ratio", REAL, participation,
		"Reports of closed rounds by members."),
	RUN("dl_run_contribution_steps", REAL, h,
		"Mean inner steps of a merged contribution."),
	RUN("dl_run_goodput_ratio", REAL, goodput,
		"Useful time by time in which members were to train."),
	RUN("dl_run_uptime_ratio", REAL, uptime,
		"Share of the time in which some member trained."),
	RUN("dl_run_training_members", COUNT, live, "Members that train."),
	RUN("dl_run_push_value_bits", REAL, up_bits,
		"Bits that a value of a push took."),
	RUN("dl_run_global_value_bits", REAL, down_bits,
		"Bits that a value on its way to a learner took."),
	RUN("dl_run_quorum_seconds", REAL_TIME, quorum_ns,
		"From a round's opening to its quorum, smoothed."),
	RUN("dl_run_grace_seconds", REAL_TIME, grace_ns,
		"Grace window that was granted last."),
	RUN("dl_run_sync_seconds", REAL_TIME, sync_ns,
		"To merge and commit, smoothed."),
	RUN("dl_run_step_seconds", REAL_TIME, step_ns,
		"An inner step of the fastest learner, smoothed."),
	RUN("dl_run_ending", COUNT, ending, "Whether the run ends."),
	RUN("dl_run_done", COUNT, done, "Whether the run is over."),
	RUN("dl_run_last_event_timestamp_seconds", TIME, last,
		"When the syncer was last told anything."),
};

#define LEARNER(name, kind, member, help)                                      \
	{                                                                      \
		name, help, kind, offsetof(struct dl_stat_member, member)      \
	}
static const struct metric learner_metrics[] = {
	LEARNER("dl_learner_clock_steps", COUNT, clock, "Its logical clock."),
	LEARNER("dl_learner_lag_steps", COUNT, lag,
		"How far it is behind the run's clock."),
	LEARNER("dl_learner_steps_total", COUNT, steps, "Own inner steps."),
	LEARNER("dl_learner_tokens_total", COUNT, tokens, "Own tokens."),
	LEARNER("dl_learner_weight_ratio", REAL, share,
		"Its share of all weight that was merged."),
	LEARNER("dl_learner_last_seen_timestamp_seconds", TIME, seen,
		"When it was last heard of."),
	LEARNER("dl_learner_joins_total", COUNT, joins,
		"Processes that joined by that name."),
	LEARNER("dl_learner_loss", REAL, loss,
		"Loss of its last step, in nats a token."),
	LEARNER("dl_learner_rounds_total", COUNT, info.rounds,
		"Closed rounds of which it was a member."),
	LEARNER("dl_learner_reports_total", COUNT, info.reported,
		"Those of them to which it reported in time."),
	LEARNER("dl_learner_pushes_total", COUNT, info.pushes,
		"Pushes that arrived."),
	LEARNER("dl_learner_merged_pushes_total", COUNT, info.merged_pushes,
		"Pushes that were merged."),
	LEARNER("dl_learner_late_pushes_total", COUNT, info.late_pushes,
		"Pushes that came after their round was merged."),
	LEARNER("dl_learner_wasted_tokens_total", COUNT, wasted,
		"Tokens of late pushes that were dropped."),
	LEARNER("dl_learner_push_bytes_total", COUNT, info.bytes_up,
		"Bytes of its pushes."),
	LEARNER("dl_learner_global_bytes_total", COUNT, info.bytes_down,
		"Bytes of new values for it."),
};

#define FRAGMENT(name, kind, member, help)                                     \
	{                                                                      \
		name, help, kind, offsetof(struct dl_stat_fragment, member)    \
	}
static const struct metric fragment_metrics[] = {
	FRAGMENT("dl_fragment_version_number", NUMBER, version,
		"Its newest version, within the epoch."),
	FRAGMENT("dl_fragment_committed_timestamp_seconds", TIME, committed,
		"When that was committed; 0 when it was not seen."),
	FRAGMENT("dl_fragment_rounds_total", COUNT, rounds, "Rounds opened."),
	FRAGMENT(
		"dl_fragment_merges_total", COUNT, merges, "Merges committed."),
	FRAGMENT("dl_fragment_push_norm", REAL, norm,
		"Norm of a push a step, smoothed."),
	FRAGMENT("dl_fragment_push_cosine", REAL, alike.mean,
		"Mean cosine between the pushes of a merge, smoothed."),
	FRAGMENT("dl_fragment_push_cosine_min", REAL, alike.least,
		"Least cosine between the pushes of a merge, smoothed."),
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void put_head(struct dl_buf *out, const char *name, const char *help)
{
	static const char total[] = "_total";
	size_t n = strlen(name), k = strlen(total);
	int counts = n > k && !strcmp(name + n - k, total);

	dl_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
		counts ? "counter" : "gauge");
}

static void put_label(struct dl_buf *out, const char *name, const char *value)
{
	if (out->data[out->len - 1] != '{')
		dl_buf_byte(out, ',');
	dl_buf_printf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			dl_buf_byte(out, '\\');
		if (*value == '\n')
			dl_buf_str(out, "\\n");
		else
			dl_buf_byte(out, *value);
	}
	dl_buf_byte(out, '"');
}

/* NAME{run="RUN" and room for more labels. */
static void begin(struct dl_buf *out, const char *name, const struct dl_stat *s)
{
	dl_buf_printf(out, "%s{", name);
	put_label(out, "run", s->run);
}

static void end(struct dl_buf *out, double v)
{
	dl_buf_str(out, "} ");
	if (isnan(v))
		dl_buf_str(out, "NaN");
	else if (isinf(v))
		dl_buf_str(out, v < 0 ? "-Inf" : "+Inf");
	else
		dl_buf_printf(out, "%.15g", v);
	dl_buf_byte(out, '\n');
}

static double value(const struct metric *m, const void *base)
{
	const void *at = (const char *)base + m->at;

	switch (m->kind) {
	case TIME:
		return (double)*(const int64_t *)at / 1e9;
	case REAL:
		return *(const double *)at;
	case REAL_TIME:
		return *(const double *)at / 1e9;
	case NUMBER:
		return (double)((const struct dl_version *)at)->number;
	case COUNT:
		break;
	}
	return (double)*(const uint64_t *)at;
}

static void put_run(struct dl_buf *out, const struct dl_stat *s)
{
	char epoch[24];

	put_head(out, "dl_run_info", "The run.");
	begin(out, "dl_run_info", s);
	snprintf(epoch, sizeof epoch, "%" PRIu64, s->totals.epoch);
	put_label(out, "epoch", epoch);
	end(out, 1);
	for (size_t i = 0; i < COUNT_OF(run_metrics); i++) {
		put_head(out, run_metrics[i].name, run_metrics[i].help);
		begin(out, run_metrics[i].name, s);
		end(out, value(run_metrics + i, &s->totals));
	}
}

static void put_learners(struct dl_buf *out, const struct dl_stat *s)
{
	for (size_t i = 0; i < COUNT_OF(learner_metrics); i++) {
		const struct metric *m = learner_metrics + i;

		put_head(out, m->name, m->help);
		for (size_t k = 0; k < s->members; k++) {
			begin(out, m->name, s);
			put_label(out, "learner", s->member[k].name);
			end(out, value(m, s->member + k));
		}
	}
}

static void put_state(struct dl_buf *out, const char *name,
	const struct dl_stat *s, size_t k, int state, double v)
{
	begin(out, name, s);
	put_label(out, "learner", s->member[k].name);
	put_label(out, "state", dl_stat_state_words[state]);
	end(out, v);
}

static void put_states(struct dl_buf *out, const struct dl_stat *s)
{
	static const char is[] = "dl_learner_state";
	static const char was[] = "dl_learner_state_seconds_total";

	put_head(out, is, "Whether it is in that state.");
	for (size_t k = 0; k < s->members; k++)
		for (int i = 0; i < DL_STAT_STATES; i++)
			put_state(
				out, is, s, k, i, (int)s->member[k].state == i);
	put_head(out, was, "How long it was.");
	for (size_t k = 0; k < s->members; k++)
		for (int i = DL_STAT_AWAY; i < DL_STAT_STATES; i++)
			put_state(out, was, s, k, i,
				(double)s->member[k].ns[i] / 1e9);
}

static void put_refusals(struct dl_buf *out, const struct dl_stat *s)
{
	static const char name[] = "dl_learner_refused_total";

	put_head(out, name, "Pushes and steps refused.");
	for (size_t k = 0; k < s->members; k++)
		for (int r = DL_REFUSED_NOT + 1; r < DL_REFUSALS; r++) {
			begin(out, name, s);
			put_label(out, "learner", s->member[k].name);
			put_label(out, "reason",
				dl_refusal_name((enum dl_refusal)r));
			end(out, (double)s->member[k].info.refused[r]);
		}
}

static void put_fragments(struct dl_buf *out, const struct dl_stat *s)
{
	for (size_t i = 0; i < COUNT_OF(fragment_metrics); i++) {
		const struct metric *m = fragment_metrics + i;

		put_head(out, m->name, m->help);
		for (uint64_t p = 0; p < s->totals.fragments; p++) {
			char fragment[24];

			snprintf(fragment, sizeof fragment, "%" PRIu64, p);
			begin(out, m->name, s);
			put_label(out, "fragment", fragment);
			end(out, value(m, s->fragment + p));
		}
	}
}

void prometheus_put(struct dl_buf *out, const struct dl_stat *s)
{
	put_run(out, s);
	put_learners(out, s);
	put_states(out, s);
	put_refusals(out, s);
	put_fragments(out, s);
}
