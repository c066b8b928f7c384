/* dl-sim fleet: learners and syncers of given speeds and accidents. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/codec.h"
#include "cmd/sim-fleet-learners.h"
#include "cmd/sim-fleet-table.h"
#include "cmd/sim-options.h"
#include "cmd/sim-tape.h"
#include "cmd/sim.h"
#include "sim/fleet.h"

#define SHORT CMD_SHORT "m:t:n:H:k:r:"

enum {
	LEARNERS_MOST = 10000,
	FRAGMENTS_MOST = 100000,
	RUNS_MOST = 1000000,
	TOKENS = 1000, /* a step */
};

enum {
	TAU = 256,
	GRACE,
	LATE,
	APPLY,
	WAIT,
	BELOW,
	JITTER,
	DELAY,
	TRANSFER,
	MERGE,
	SYNCERS,
	LIARS,
	DEATHS,
	KILLED,
	CUTS,
	CRASHES,
	ROUNDS,
	STEPS,
	TIME,
	SEED,
	TAPE,
	SPREAD,
	SITES,
	LINK,
	MODEL,
	PUSH,
	GLOBAL,
	EXTRA,
	JOIN,
	REGROUP,
	END_TOKENS,
};

static const struct option options[] = {
	{"learners", required_argument, NULL, 'm'},
	{"step-time", required_argument, NULL, 't'},
	{"fragments", required_argument, NULL, 'n'},
	{"h", required_argument, NULL, 'H'},
	{"tau", required_argument, NULL, TAU},
	{"quorum", required_argument, NULL, 'k'},
	{"grace", required_argument, NULL, GRACE},
	{"late", required_argument, NULL, LATE},
	{"apply", required_argument, NULL, APPLY},
	{"wait", no_argument, NULL, WAIT},
	{"below-quorum", required_argument, NULL, BELOW},
	{"jitter", required_argument, NULL, JITTER},
	{"delay", required_argument, NULL, DELAY},
	{"transfer", required_argument, NULL, TRANSFER},
	{"merge", required_argument, NULL, MERGE},
	{"syncers", required_argument, NULL, SYNCERS},
	{"liars", required_argument, NULL, LIARS},
	{"deaths", required_argument, NULL, DEATHS},
	{"kill", required_argument, NULL, KILLED},
	{"cuts", required_argument, NULL, CUTS},
	{"crashes", required_argument, NULL, CRASHES},
	{"rounds", required_argument, NULL, ROUNDS},
	{"steps", required_argument, NULL, STEPS},
	{"time", required_argument, NULL, TIME},
	{"seed", required_argument, NULL, SEED},
	{"tape", required_argument, NULL, TAPE},
	{"runs", required_argument, NULL, 'r'},
	{"spread", required_argument, NULL, SPREAD},
	{"sites", required_argument, NULL, SITES},
	{"link", required_argument, NULL, LINK},
	{"model", required_argument, NULL, MODEL},
	{"push", required_argument, NULL, PUSH},
	{"global", required_argument, NULL, GLOBAL},
	{"extra", required_argument, NULL, EXTRA},
	{"join", required_argument, NULL, JOIN},
	{"regroup", required_argument, NULL, REGROUP},
	{"tokens", required_argument, NULL, END_TOKENS},
	CMD_TABLE_LONG,
	CMD_LONG,
	{0},
};

struct settings {
	struct dl_fleet_config fleet;
	struct fleet_learners learners;
	struct dl_fleet_kill *kill;
	const char *tape; /* a path, or NULL */
	int same; /* --global is as --push */
	uint32_t runs;
	struct fleet_table table;
};

static uint32_t u32(const char *option, uint64_t max)
{
	return (uint32_t)cmd_u64(option, optarg, 1, max);
}

/* "T" or "T:DOWN". */
static void accidents(const char *option, int64_t *mean, int64_t *down)
{
	char *text = dl_strdup(optarg), *colon = strchr(text, ':');

	if (colon) {
		*colon = '\0';
		*down = cmd_duration(option, colon + 1);
	}
	*mean = cmd_duration(option, text);
	free(text);
}

/* "LEARNER:AT:DOWN", one more. */
static void add_kill(struct settings *s)
{
	struct dl_fleet_config *c = &s->fleet;
	char *text = dl_strdup(optarg), *rest = text;
	char *learner = strsep(&rest, ":"), *at = strsep(&rest, ":");
	struct dl_fleet_kill *k;

	if (!rest)
		cmd_usage("--kill %s: not LEARNER:AT:DOWN", optarg);
	s->kill = dl_resize(s->kill, c->kills + 1, sizeof *s->kill);
	k = &s->kill[c->kills++];
	k->learner = (uint32_t)cmd_u64("--kill", learner, 0, LEARNERS_MOST);
	k->at_ns = cmd_duration("--kill", at);
	k->down_ns = cmd_duration("--kill", rest);
	c->kill = s->kill;
	free(text);
}

/* "N[:FROM[:HERE[:AWAY]]]". */
static void parse_extra(struct fleet_learners *l)
{
	char *text = dl_strdup(optarg), *rest = text;
	int64_t *const times[] = {&l->from_ns, &l->here_ns, &l->away_ns};

	l->extra = (uint32_t)cmd_u64(
		"--extra", strsep(&rest, ":"), 0, LEARNERS_MOST);
	for (size_t i = 0; i < sizeof times / sizeof *times && rest; i++)
		*times[i] = cmd_duration("--extra", strsep(&rest, ":"));
	if (rest)
		cmd_usage("--extra %s: not N:FROM:HERE:AWAY", optarg);
	free(text);
}

static double nanoseconds(const char *option, const char *arg)
{
	return (double)cmd_duration(option, arg);
}

static int word(const char *option, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(optarg, words[i]))
			return i;
	cmd_usage("%s %s: no such word", option, optarg);
}

static void parse_grace(struct dl_sync_config *c)
{
	if (!strcmp(optarg, "none")) {
		c->grace = DL_GRACE_NONE;
	} else if (!strcmp(optarg, "adaptive")) {
		c->grace = DL_GRACE_ADAPTIVE;
	} else {
		c->grace = DL_GRACE_FIXED;
		c->grace_ns = cmd_duration("--grace", optarg);
	}
}

static void parse_below(struct dl_sync_config *c)
{
	c->below = DL_BELOW_WAIT;
	if (!strncmp(optarg, "merge:", 6)) {
		c->below = DL_BELOW_MERGE;
		c->below_ns = cmd_duration("--below-quorum", optarg + 6);
	} else if (strcmp(optarg, "wait")) {
		cmd_usage("--below-quorum %s: not wait or merge:TIME", optarg);
	}
}

static void parse_apply(struct dl_fleet_config *c)
{
	static const char *const words[] = {"overwrite", "carry"};

	if (!strncmp(optarg, "blend:", 6)) {
		c->apply = DL_APPLY_BLEND;
		c->alpha = cmd_double("--apply blend", optarg + 6, 0, 1);
	} else {
		c->apply = (enum dl_apply)word("--apply", words, 2);
	}
}

/* Options that say what the syncer and the learners do. */
static int parse_rule(struct settings *s, int opt)
{
	static const char *const lates[] = {"drop", "next", "now"};
	struct dl_sync_config *c = &s->fleet.sync;

	switch (opt) {
	case 'H':
		c->schedule.h = cmd_u64("-H", optarg, 1, UINT32_MAX);
		c->min_h = c->schedule.h / 2;
		break;
	case 'k':
		c->quorum = u32("--quorum", LEARNERS_MOST);
		break;
	case TAU:
		c->tau = cmd_u64("--tau", optarg, 0, UINT32_MAX);
		break;
	case GRACE:
		parse_grace(c);
		break;
	case LATE:
		c->late = (enum dl_late)word("--late", lates, 3);
		break;
	case APPLY:
		parse_apply(&s->fleet);
		break;
	case WAIT:
		s->fleet.wait = 1;
		break;
	case BELOW:
		parse_below(c);
		break;
	default:
		return 0;
	}
	return 1;
}

/* Options that say how the machines are. */
static int parse_machine(struct settings *s, int opt)
{
	struct dl_fleet_config *c = &s->fleet;
	struct fleet_learners *l = &s->learners;

	switch (opt) {
	case 't':
		l->step_time = optarg;
		break;
	case JITTER:
		l->each.jitter = cmd_double("--jitter", optarg, 0, 10);
		break;
	case SPREAD:
		c->spread = cmd_double("--spread", optarg, 0, 10);
		break;
	case MERGE:
		c->merge_ns = cmd_duration("--merge", optarg);
		break;
	case SYNCERS:
		c->syncers = u32("--syncers", 1000);
		break;
	case LIARS:
		l->liars = u32("--liars", LEARNERS_MOST);
		break;
	default:
		return 0;
	}
	return 1;
}

/* Options that say how the links are. */
static int parse_link(struct settings *s, int opt)
{
	struct fleet_learners *l = &s->learners;

	switch (opt) {
	case DELAY:
		sim_list(&l->delays, "--delay", optarg, nanoseconds);
		break;
	case TRANSFER:
		l->each.push_ns = l->each.global_ns =
			cmd_duration("--transfer", optarg);
		break;
	case SITES:
		l->sites = u32("--sites", LEARNERS_MOST);
		break;
	case LINK:
		sim_list(&l->links, "--link", optarg, sim_link);
		break;
	case MODEL:
		l->values = (double)cmd_size("--model", optarg);
		break;
	case PUSH:
		l->push = cmd_codec("--push", optarg);
		break;
	case GLOBAL:
		l->global = cmd_codec("--global", optarg);
		s->same = 0;
		break;
	default:
		return 0;
	}
	return 1;
}

/* Options that say who comes and goes, and what breaks. */
static int parse_presence(struct settings *s, int opt)
{
	struct dl_fleet_config *c = &s->fleet;

	switch (opt) {
	case EXTRA:
		parse_extra(&s->learners);
		break;
	case JOIN:
		c->join_ns = cmd_duration("--join", optarg);
		break;
	case REGROUP:
		accidents("--regroup", &c->regroup_ns, &c->gather_ns);
		break;
	case DEATHS:
		accidents("--deaths", &c->death_ns, &c->down_ns);
		break;
	case KILLED:
		add_kill(s);
		break;
	case CUTS:
		accidents("--cuts", &c->cut_ns, &c->cut_for_ns);
		break;
	case CRASHES:
		accidents("--crashes", &c->crash_ns, &c->restart_ns);
		break;
	default:
		return 0;
	}
	return 1;
}

static void parse_rest(struct settings *s, int opt)
{
	switch (opt) {
	case 'n':
		break;
	case 'm':
		s->learners.base = u32("--learners", LEARNERS_MOST);
		break;
	case ROUNDS:
		s->fleet.rounds = cmd_u64("--rounds", optarg, 1, INT64_MAX);
		break;
	case STEPS:
		s->fleet.steps = cmd_u64("--steps", optarg, 1, INT64_MAX);
		break;
	case TIME:
		s->fleet.time_ns = cmd_duration("--time", optarg);
		break;
	case END_TOKENS:
		s->fleet.tokens = cmd_size("--tokens", optarg);
		break;
	case 'r':
		s->runs = u32("--runs", RUNS_MOST);
		break;
	case SEED:
		s->fleet.seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
		break;
	case TAPE:
		s->tape = optarg;
		break;
	default:
		if (!cmd_table_option(&s->table.table, opt))
			cmd_common_option(opt);
	}
}

static void parse(struct settings *s, int argc, char **argv)
{
	uint32_t fragments = 24;
	int opt;

	opterr = 0; /* the first pass looks for -n alone */
	while ((opt = getopt_long(argc, argv, SHORT, options, NULL)) != -1)
		if (opt == 'n')
			fragments = u32("--fragments", FRAGMENTS_MOST);
	opterr = 1;
	optind = 0;
	dl_fleet_config_default(&s->fleet, fragments);
	s->fleet.seed = 1;
	while ((opt = getopt_long(argc, argv, SHORT, options, NULL)) != -1)
		if (!parse_rule(s, opt) && !parse_machine(s, opt) &&
			!parse_link(s, opt) && !parse_presence(s, opt))
			parse_rest(s, opt);
	if (optind < argc)
		cmd_usage("%s: nothing is read", argv[optind]);
	if (s->tape && s->fleet.syncers > 1)
		cmd_usage("--tape: of one syncer, not of %u", s->fleet.syncers);
	if (s->tape && s->runs > 1)
		cmd_usage("--tape: of one run, not of %u", s->runs);
}

/* Whole bytes or values, or as many as can be counted. */
static uint64_t whole(double n)
{
	return n < 0x1p63 ? (uint64_t)n : UINT64_C(1) << 63;
}

static void set_sizes(struct dl_fleet_config *c, const struct fleet_learners *l)
{
	double values = l->values / c->sync.schedule.fragments;

	c->elements = whole(values);
	c->push_bytes = whole(values * sim_codec_bits(l->push) / 8);
	c->global_bytes = whole(values * sim_codec_bits(l->global) / 8);
}

static void finish(struct settings *s)
{
	struct dl_fleet_config *c = &s->fleet;
	struct fleet_learners *l = &s->learners;

	c->learners = l->base + l->extra;
	if (c->learners > LEARNERS_MOST)
		cmd_usage("%u learners: more than %d", c->learners,
			LEARNERS_MOST);
	for (size_t i = 0; i < c->kills; i++)
		if (c->kill[i].learner >= c->learners)
			cmd_usage("--kill: there is no learner %u",
				c->kill[i].learner);
	if (s->same)
		l->global = l->push;
	set_sizes(c, l);
	if (c->wait)
		c->sync.min_h = 0;
	if (!c->rounds && !c->steps && !c->tokens && !c->time_ns)
		c->steps = 1000;
	c->learner = fleet_learners_make(l, c->sync.schedule.fragments);
}

/* One run; the exit status it comes to. */
static int run(struct settings *s)
{
	struct dl_fleet_result r;
	struct sim_tape tape;
	struct dl_err e;
	char took[DL_HUMAN];
	int status = DL_OK;

	if (s->tape)
		sim_tape_begin(&tape, &s->fleet);
	dl_fleet_run(&s->fleet, &r);
	if (s->tape && sim_tape_end(&tape, s->tape, &e))
		status = cmd_fail(&e);
	fleet_table_add(&s->table, &s->fleet, &r);
	cmd_debug("seed %llu: %llu rounds, %llu merges in %s",
		(unsigned long long)s->fleet.seed, (unsigned long long)r.rounds,
		(unsigned long long)r.merges,
		dl_human_duration(took, r.ended_ns));
	if (r.fault[0]) {
		cmd_warn("seed %llu: a rule is broken: %s",
			(unsigned long long)s->fleet.seed, r.fault);
		status = DL_SOFTWARE;
	}
	dl_fleet_result_release(&r);
	return status;
}

int sim_fleet(int argc, char **argv)
{
	struct settings s = {
		.learners = {.each = {.jitter = 0.05,
				     .tokens = TOKENS,
				     .delay_ns = DL_SECOND / 50,
				     .push_ns = DL_SECOND / 20,
				     .global_ns = DL_SECOND / 20},
			.base = 8,
			.step_time = "1s",
			.values = 5e9,
			.push = DL_CODEC_BF16},
		.same = 1,
		.runs = 1,
	};
	int status = DL_OK, flushed;

	parse(&s, argc, argv);
	finish(&s);
	for (uint32_t i = 0; i < s.runs && !status; i++, s.fleet.seed++)
		status = run(&s);
	fleet_table_print(&s.table);
	flushed = cmd_flush();
	free((void *)s.fleet.learner);
	free(s.kill);
	return status ? status : flushed;
}
