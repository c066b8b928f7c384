#include "cmd/sync/options.h"

#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/codec.h"
#include "cmd/learn/apply.h"

/* A quorum of all: everybody who lives is waited for, however long. */
static const int64_t forever = INT64_MAX / 4;

struct preset {
	const char *name;
	uint64_t h, tau;
	uint32_t fragments;
	enum dl_grace grace;
	int64_t grace_ns;
	enum dl_late late;
	enum dl_rule rule;
	struct dl_outer outer;
	const char *apply;
	int wait;
};

static const struct preset presets[] = {
	{"decoupled", 24, 2, 24, DL_GRACE_ADAPTIVE, 0, DL_LATE_DROP, DL_RDA,
		{0.7f, 0.5f, 1}, "carry", 0},
	{"streaming", 48, 2, 24, DL_GRACE_FIXED, INT64_MAX / 4, DL_LATE_DROP,
		DL_MEAN, {0.7f, 0.9f, 1}, "blend:0.5", 1},
	{"diloco", 500, 0, 1, DL_GRACE_FIXED, INT64_MAX / 4, DL_LATE_DROP,
		DL_MEAN, {0.7f, 0.9f, 1}, "overwrite", 1},
	{"downpour", 6, 2, 24, DL_GRACE_NONE, 0, DL_LATE_NOW, DL_MEAN,
		{1, 0, 0}, "overwrite", 0},
};

static void take_preset(struct sync_options *o, const char *name)
{
	size_t n = sizeof presets / sizeof *presets, i = 0;

	while (i < n && strcmp(presets[i].name, name) != 0)
		i++;
	if (i == n)
		cmd_usage("--preset %s: not decoupled, streaming, diloco or "
			  "downpour",
			name);
	o->config.schedule.h = presets[i].h;
	o->config.tau = presets[i].tau;
	o->config.grace = presets[i].grace;
	o->config.grace_ns = presets[i].grace_ns;
	o->config.late = presets[i].late;
	o->fragments = presets[i].fragments;
	o->rule = presets[i].rule;
	o->outer = presets[i].outer;
	o->apply = presets[i].apply;
	o->wait = presets[i].wait;
}

static void take_grace(struct dl_sync_config *c, const char *s)
{
	if (strcmp(s, "none") == 0) {
		c->grace = DL_GRACE_NONE;
	} else if (strcmp(s, "adaptive") == 0) {
		c->grace = DL_GRACE_ADAPTIVE;
	} else {
		c->grace = DL_GRACE_FIXED;
		c->grace_ns = cmd_duration("--grace", s);
	}
}

static void take_quorum(struct dl_sync_config *c, const char *s)
{
	if (strcmp(s, "all") == 0) {
		c->quorum = 1;
		c->grace = DL_GRACE_FIXED;
		c->grace_ns = forever;
	} else {
		c->quorum = (uint32_t)cmd_u64("--quorum", s, 1, 1 << 20);
	}
}

static void take_late(struct dl_sync_config *c, const char *s)
{
	static const char *const word[] = {"drop", "next", "now"};

	for (int i = 0; i < 3; i++)
		if (strcmp(s, word[i]) == 0) {
			c->late = (enum dl_late)i;
			return;
		}
	cmd_usage("--late %s: not drop, next or now", s);
}

static void take_below(struct dl_sync_config *c, const char *s)
{
	if (strcmp(s, "wait") == 0) {
		c->below = DL_BELOW_WAIT;
	} else if (strncmp(s, "merge:", 6) == 0) {
		c->below = DL_BELOW_MERGE;
		c->below_ns = cmd_duration("--below-quorum", s + 6);
	} else {
		cmd_usage("--below-quorum %s: not wait or merge:DURATION", s);
	}
}

static void take_rule(struct sync_options *o, const char *s)
{
	int rule = dl_rule_parse(s, strlen(s));

	if (rule != DL_RDA && rule != DL_MEAN)
		cmd_usage("--rule %s: not rda or mean", s);
	o->rule = (enum dl_rule)rule;
}

static void take_apply(struct sync_options *o, const char *s)
{
	enum dl_apply apply;
	double alpha;

	if (learn_parse_apply(s, &apply, &alpha))
		cmd_usage("--apply %s: not overwrite, carry or blend:A", s);
	o->apply = s;
}

/* What goes where: files, links, processes. */
static int read_place(struct sync_options *o, int opt)
{
	switch (opt) {
	case SYNC_STORE:
		o->store = optarg;
		break;
	case SYNC_LAYOUT:
		o->layout = optarg;
		break;
	case SYNC_RUN:
		if (!dl_name_ok(optarg, strlen(optarg)))
			cmd_usage("--run %s: not a good name", optarg);
		o->run = optarg;
		break;
	case 'o':
		o->output = optarg;
		break;
	case SYNC_THREADS:
		o->threads = (unsigned)cmd_u64("--threads", optarg, 0, 1024);
		break;
	case SYNC_DEAD:
		o->dead_ns = cmd_period("--dead", optarg);
		break;
	case SYNC_FRAGMENTS:
		o->fragments =
			(uint32_t)cmd_u64("--fragments", optarg, 1, 1 << 20);
		break;
	default:
		return 0;
	}
	return 1;
}

/* How the merged update becomes a step, and what learners do with it. */
static int read_step(struct sync_options *o, int opt)
{
	switch (opt) {
	case SYNC_PRESET:
		break; /* taken before all others */
	case SYNC_RULE:
		take_rule(o, optarg);
		break;
	case SYNC_OUTER_LR:
		o->outer.lr = (float)cmd_double("--outer-lr", optarg, 0, 100);
		break;
	case SYNC_MOMENTUM:
		o->outer.mu =
			(float)cmd_double("--momentum", optarg, 0, 0.9999);
		break;
	case SYNC_NESTEROV:
	case SYNC_NO_NESTEROV:
		o->outer.nesterov = opt == SYNC_NESTEROV;
		break;
	case SYNC_GLOBAL:
		o->global = cmd_codec("--global", optarg);
		break;
	case SYNC_APPLY:
		take_apply(o, optarg);
		break;
	case SYNC_WAIT:
	case SYNC_NO_WAIT:
		o->wait = opt == SYNC_WAIT;
		break;
	default:
		return 0;
	}
	return 1;
}

/* When rounds open and close, and what is refused: the core's settings. */
static int read_round(struct sync_options *o, int opt)
{
	struct dl_sync_config *c = &o->config;

	switch (opt) {
	case 'H':
		o->h = cmd_u64("-H", optarg, 1, UINT32_MAX);
		break;
	case SYNC_TAU:
		c->tau = cmd_u64("--tau", optarg, 0, UINT32_MAX);
		break;
	case SYNC_QUORUM:
		take_quorum(c, optarg);
		break;
	case SYNC_GRACE:
		take_grace(c, optarg);
		break;
	case SYNC_GAMMA:
		c->gamma = cmd_double("--gamma", optarg, 0, 1);
		break;
	case SYNC_MIN_H:
		c->min_h = cmd_u64("--min-h", optarg, 0, UINT32_MAX);
		o->min_h_given = 1;
		break;
	case SYNC_LATE:
		take_late(c, optarg);
		break;
	case SYNC_BELOW:
		take_below(c, optarg);
		break;
	case SYNC_TOKENS:
		c->budget_tokens = cmd_u64("--tokens", optarg, 1, UINT64_MAX);
		break;
	case SYNC_STEPS:
		c->budget_steps = cmd_u64("--steps", optarg, 1, UINT64_MAX);
		break;
	case SYNC_MAX_NORM:
		c->max_norm = cmd_double("--max-norm", optarg, 1, 1e9);
		break;
	case SYNC_MAX_RATE:
		c->max_rate = cmd_double("--max-rate", optarg, 1, 1e9);
		break;
	case SYNC_STALL:
		c->stall_ns = cmd_period("--stall", optarg);
		break;
	case SYNC_END_TIMEOUT:
		c->end_ns = cmd_duration("--end-timeout", optarg);
		break;
	default:
		return 0;
	}
	return 1;
}

/* A preset is where the others start from, wherever it stands. */
static void find_preset(struct sync_options *o, int argc, char **argv,
	const char *shorts, const struct option *longs)
{
	int opt, quiet = opterr;

	opterr = 0;
	take_preset(o, "decoupled");
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		if (opt == SYNC_PRESET)
			take_preset(o, optarg);
	opterr = quiet;
	optind = 0;
}

void sync_options_begin(struct sync_options *o, int argc, char **argv,
	const char *shorts, const struct option *longs)
{
	*o = (struct sync_options){.dead_ns = 10 * DL_SECOND};
	dl_sync_config_default(&o->config, 1);
	find_preset(o, argc, argv, shorts, longs);
}

int sync_option(struct sync_options *o, int opt)
{
	return read_place(o, opt) || read_step(o, opt) || read_round(o, opt);
}
