#include "cmd/serve/options.h"

#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/apply.h"

enum {
	STORE = 256,
	LISTEN,
	LAYOUT,
	RUN,
	TAPE,
	INSECURE,
	PRESET,
	FRAGMENTS,
	TAU,
	QUORUM,
	GRACE,
	GAMMA,
	MIN_H,
	LATE,
	BELOW,
	RULE,
	OUTER_LR,
	MOMENTUM,
	NESTEROV,
	NO_NESTEROV,
	APPLY,
	WAIT,
	NO_WAIT,
	TOKENS,
	STEPS,
	MAX_NORM,
	MAX_RATE,
	STALL,
	DEAD,
	END_TIMEOUT,
	THREADS,
};

static const struct option options[] = {
	{"store", required_argument, NULL, STORE},
	{"listen", required_argument, NULL, LISTEN},
	{"layout", required_argument, NULL, LAYOUT},
	{"run", required_argument, NULL, RUN},
	{"output", required_argument, NULL, 'o'},
	{"tape", required_argument, NULL, TAPE},
	{"insecure", no_argument, NULL, INSECURE},
	{"preset", required_argument, NULL, PRESET},
	{"fragments", required_argument, NULL, FRAGMENTS},
	{"tau", required_argument, NULL, TAU},
	{"quorum", required_argument, NULL, QUORUM},
	{"grace", required_argument, NULL, GRACE},
	{"gamma", required_argument, NULL, GAMMA},
	{"min-h", required_argument, NULL, MIN_H},
	{"late", required_argument, NULL, LATE},
	{"below-quorum", required_argument, NULL, BELOW},
	{"rule", required_argument, NULL, RULE},
	{"outer-lr", required_argument, NULL, OUTER_LR},
	{"momentum", required_argument, NULL, MOMENTUM},
	{"nesterov", no_argument, NULL, NESTEROV},
	{"no-nesterov", no_argument, NULL, NO_NESTEROV},
	{"apply", required_argument, NULL, APPLY},
	{"wait", no_argument, NULL, WAIT},
	{"no-wait", no_argument, NULL, NO_WAIT},
	{"tokens", required_argument, NULL, TOKENS},
	{"steps", required_argument, NULL, STEPS},
	{"max-norm", required_argument, NULL, MAX_NORM},
	{"max-rate", required_argument, NULL, MAX_RATE},
	{"stall", required_argument, NULL, STALL},
	{"dead", required_argument, NULL, DEAD},
	{"end-timeout", required_argument, NULL, END_TIMEOUT},
	{"threads", required_argument, NULL, THREADS},
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

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

static void take_preset(struct serve_options *o, const char *name)
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

static void take_rule(struct serve_options *o, const char *s)
{
	int rule = dl_rule_parse(s, strlen(s));

	if (rule != DL_RDA && rule != DL_MEAN)
		cmd_usage("--rule %s: not rda or mean", s);
	o->rule = (enum dl_rule)rule;
}

static void take_listen(struct serve_options *o, const char *s)
{
	struct dl_err e;

	if (o->listens == LISTEN_MAX)
		cmd_usage("--listen: more than %d", LISTEN_MAX);
	if (dl_address_parse(&o->listen[o->listens++], s, &e))
		cmd_usage("%s", e.text);
}

static void take_apply(struct serve_options *o, const char *s)
{
	enum dl_apply apply;
	double alpha;

	if (learn_parse_apply(s, &apply, &alpha))
		cmd_usage("--apply %s: not overwrite, carry or blend:A", s);
	o->apply = s;
}

/* What goes where: files, links, processes. */
static int read_place(struct serve_options *o, int opt)
{
	switch (opt) {
	case STORE:
		o->store = optarg;
		break;
	case LISTEN:
		take_listen(o, optarg);
		break;
	case LAYOUT:
		o->layout = optarg;
		break;
	case RUN:
		if (!dl_name_ok(optarg, strlen(optarg)))
			cmd_usage("--run %s: not a good name", optarg);
		o->run = optarg;
		break;
	case TAPE:
		o->tape = optarg;
		break;
	case 'o':
		o->output = optarg;
		break;
	case INSECURE:
		o->insecure = o->insecure == DL_INSECURE_NO
				      ? DL_INSECURE_LOOPBACK
				      : DL_INSECURE_ANYWHERE;
		break;
	case THREADS:
		o->threads = (unsigned)cmd_u64("--threads", optarg, 0, 1024);
		break;
	case DEAD:
		o->dead_ns = cmd_period("--dead", optarg);
		break;
	case FRAGMENTS:
		o->fragments =
			(uint32_t)cmd_u64("--fragments", optarg, 1, 1 << 20);
		break;
	default:
		return 0;
	}
	return 1;
}

/* How the merged update becomes a step, and what learners do with it. */
static int read_step(struct serve_options *o, int opt)
{
	switch (opt) {
	case PRESET:
		break; /* taken before all others */
	case RULE:
		take_rule(o, optarg);
		break;
	case OUTER_LR:
		o->outer.lr = (float)cmd_double("--outer-lr", optarg, 0, 100);
		break;
	case MOMENTUM:
		o->outer.mu =
			(float)cmd_double("--momentum", optarg, 0, 0.9999);
		break;
	case NESTEROV:
	case NO_NESTEROV:
		o->outer.nesterov = opt == NESTEROV;
		break;
	case APPLY:
		take_apply(o, optarg);
		break;
	case WAIT:
	case NO_WAIT:
		o->wait = opt == WAIT;
		break;
	default:
		return 0;
	}
	return 1;
}

/* When rounds open and close, and what is refused: the core's settings. */
static void read_round(struct serve_options *o, int opt)
{
	struct dl_sync_config *c = &o->config;

	switch (opt) {
	case 'H':
		o->h = cmd_u64("-H", optarg, 1, UINT32_MAX);
		break;
	case TAU:
		c->tau = cmd_u64("--tau", optarg, 0, UINT32_MAX);
		break;
	case QUORUM:
		take_quorum(c, optarg);
		break;
	case GRACE:
		take_grace(c, optarg);
		break;
	case GAMMA:
		c->gamma = cmd_double("--gamma", optarg, 0, 1);
		break;
	case MIN_H:
		c->min_h = cmd_u64("--min-h", optarg, 0, UINT32_MAX);
		o->min_h_given = 1;
		break;
	case LATE:
		take_late(c, optarg);
		break;
	case BELOW:
		take_below(c, optarg);
		break;
	case TOKENS:
		c->budget_tokens = cmd_u64("--tokens", optarg, 1, UINT64_MAX);
		break;
	case STEPS:
		c->budget_steps = cmd_u64("--steps", optarg, 1, UINT64_MAX);
		break;
	case MAX_NORM:
		c->max_norm = cmd_double("--max-norm", optarg, 1, 1e9);
		break;
	case MAX_RATE:
		c->max_rate = cmd_double("--max-rate", optarg, 1, 1e9);
		break;
	case STALL:
		c->stall_ns = cmd_period("--stall", optarg);
		break;
	case END_TIMEOUT:
		c->end_ns = cmd_duration("--end-timeout", optarg);
		break;
	default:
		cmd_common_option(opt);
	}
}

static const char short_options[] = "+H:o:" CMD_SHORT;

/* A preset is where the others start from, wherever it stands. */
static void find_preset(struct serve_options *o, int argc, char **argv)
{
	int opt, quiet = opterr;

	opterr = 0;
	take_preset(o, "decoupled");
	while ((opt = getopt_long(argc, argv, short_options, options, NULL)) !=
		-1)
		if (opt == PRESET)
			take_preset(o, optarg);
	opterr = quiet;
	optind = 0;
}

void serve_options_read(struct serve_options *o, int argc, char **argv)
{
	int opt;

	*o = (struct serve_options){.dead_ns = 10 * DL_SECOND};
	dl_sync_config_default(&o->config, 1);
	find_preset(o, argc, argv);
	while ((opt = getopt_long(argc, argv, short_options, options, NULL)) !=
		-1)
		if (!read_place(o, opt) && !read_step(o, opt))
			read_round(o, opt);
	if (argc - optind > 1)
		cmd_usage("serve: more than one model");
	o->model = argv[optind];
	if (!o->store)
		cmd_usage("serve: where is the --store?");
	if (!o->listens)
		cmd_usage("serve: where to --listen?");
}
