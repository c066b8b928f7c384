/* dl-sim fleet: learners and syncers of given speeds and accidents. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/sim-tape.h"
#include "cmd/sim.h"
#include "cmd/table.h"
#include "sim/fleet.h"

enum { LEARNERS_MOST = 10000, FRAGMENTS_MOST = 100000, TOKENS = 1000 };

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
	CMD_TABLE_LONG,
	CMD_LONG,
	{0},
};

static const char *const columns[] = {"learner", "steps", "clock",
	"participation%", "effective_h", "late", "wasted%", "overwritten%",
	"lost%", "goodput%", "utilisation%", NULL};

struct settings {
	struct dl_fleet_config fleet;
	struct cmd_table table;
	struct dl_fleet_learner each; /* what all learners have in common */
	const char *step_time;
	uint32_t liars;
	struct dl_fleet_kill *kill;
	const char *tape; /* a path, or NULL */
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
	k->learner = (uint32_t)cmd_u64("--kill", learner, 0, c->learners - 1);
	k->at_ns = cmd_duration("--kill", at);
	k->down_ns = cmd_duration("--kill", rest);
	c->kill = s->kill;
	free(text);
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

/* Options that say how the machines and links are. */
static int parse_machine(struct settings *s, int opt)
{
	struct dl_fleet_config *c = &s->fleet;

	switch (opt) {
	case 't':
		s->step_time = optarg;
		break;
	case JITTER:
		s->each.jitter = cmd_double("--jitter", optarg, 0, 10);
		break;
	case DELAY:
		s->each.delay_ns = cmd_duration("--delay", optarg);
		break;
	case TRANSFER:
		s->each.transfer_ns = cmd_duration("--transfer", optarg);
		break;
	case MERGE:
		c->merge_ns = cmd_duration("--merge", optarg);
		break;
	case SYNCERS:
		c->syncers = u32("--syncers", 1000);
		break;
	case LIARS:
		s->liars = u32("--liars", LEARNERS_MOST);
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
	case ROUNDS:
		s->fleet.rounds = cmd_u64("--rounds", optarg, 1, INT64_MAX);
		break;
	case STEPS:
		s->fleet.steps = cmd_u64("--steps", optarg, 1, INT64_MAX);
		break;
	case TIME:
		s->fleet.time_ns = cmd_duration("--time", optarg);
		break;
	case SEED:
		s->fleet.seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
		break;
	case TAPE:
		s->tape = optarg;
		break;
	default:
		if (!cmd_table_option(&s->table, opt))
			cmd_common_option(opt);
	}
}

static void parse(struct settings *s, int argc, char **argv)
{
	uint32_t learners = 8, fragments = 24;
	int opt;

	opterr = 0; /* the first pass looks for -m and -n alone */
	while ((opt = getopt_long(argc, argv, CMD_SHORT "m:t:n:H:k:", options,
			NULL)) != -1) {
		if (opt == 'm')
			learners = u32("--learners", LEARNERS_MOST);
		else if (opt == 'n')
			fragments = u32("--fragments", FRAGMENTS_MOST);
	}
	opterr = 1;
	optind = 0;
	dl_fleet_config_default(&s->fleet, fragments);
	s->fleet.learners = learners;
	s->fleet.seed = 1;
	while ((opt = getopt_long(argc, argv, CMD_SHORT "m:t:n:H:k:", options,
			NULL)) != -1)
		if (opt != 'm' && opt != 'n' && !parse_rule(s, opt) &&
			!parse_machine(s, opt))
			parse_rest(s, opt);
	if (optind < argc)
		cmd_usage("%s: nothing is read", argv[optind]);
	if (s->tape && s->fleet.syncers > 1)
		cmd_usage("--tape: of one syncer, not of %u", s->fleet.syncers);
	if (s->fleet.wait)
		s->fleet.sync.min_h = 0;
	if (!s->fleet.rounds && !s->fleet.steps && !s->fleet.time_ns)
		s->fleet.steps = 1000;
}

static int64_t step_time(const char *text)
{
	int64_t t = cmd_period("--step-time", text);

	return t;
}

/* "MEAN+SPREAD": evenly from MEAN - SPREAD to MEAN + SPREAD. */
static void spread_times(struct dl_fleet_learner *l, uint32_t n,
	const char *mean_text, const char *spread_text)
{
	int64_t mean = step_time(mean_text);
	int64_t spread = cmd_duration("--step-time", spread_text);

	if (spread >= mean)
		cmd_usage("--step-time %s+%s: the spread is too large",
			mean_text, spread_text);
	for (uint32_t m = 0; m < n; m++)
		l[m].step_ns = n < 2 ? mean
				     : mean - spread +
					       (int64_t)(2.0 * (double)spread *
							 m / (n - 1));
}

/* "T,T,...": in turn. */
static void list_times(struct dl_fleet_learner *l, uint32_t n, char *text)
{
	uint32_t given = 0;
	char *rest = text, *item;

	while (given < n && (item = strsep(&rest, ",")))
		l[given++].step_ns = step_time(item);
	for (uint32_t m = given; m < n; m++)
		l[m].step_ns = l[m - given].step_ns;
}

static struct dl_fleet_learner *make_learners(const struct settings *s)
{
	uint32_t n = s->fleet.learners;
	struct dl_fleet_learner *l = dl_alloc_array(n, sizeof *l);
	char *text = dl_strdup(s->step_time), *plus = strchr(text, '+');

	for (uint32_t m = 0; m < n; m++) {
		l[m] = s->each;
		l[m].liar = m < s->liars;
	}
	if (plus) {
		*plus = '\0';
		spread_times(l, n, text, plus + 1);
	} else {
		list_times(l, n, text);
	}
	free(text);
	return l;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void put_line(
	struct cmd_table *t, const char *name, const struct dl_fleet_line *l)
{
	const struct dl_account *a = &l->account;
	double own = (double)a->own, useful = 0, h = 0;

	if (a->own)
		useful = (double)l->busy_ns * (double)a->merged / own;
	if (a->merged_pushes)
		h = (double)a->merged / (double)a->merged_pushes;
	cmd_table_word(t, name);
	cmd_table_number(t, "%" PRIu64, l->steps);
	cmd_table_number(t, "%" PRIu64, l->clock);
	cmd_table_number(
		t, "%.1f", percent((double)l->reported, (double)l->rounds));
	cmd_table_number(t, "%.2f", h);
	cmd_table_number(t, "%" PRIu64, a->late_pushes);
	cmd_table_number(
		t, "%.1f", percent((double)(a->late + a->refused), own));
	cmd_table_number(t, "%.1f", percent((double)a->overwritten, own));
	cmd_table_number(t, "%.1f",
		percent((double)(a->lost + a->unsent + a->out), own));
	cmd_table_number(t, "%.1f", percent(useful, (double)l->allocated_ns));
	cmd_table_number(
		t, "%.1f", percent((double)l->busy_ns, (double)l->up_ns));
}

static void print(struct settings *s, const struct dl_fleet_result *r)
{
	char name[24], took[DL_HUMAN];

	for (uint32_t m = 0; m < s->fleet.learners; m++) {
		snprintf(name, sizeof name, "%u", m);
		put_line(&s->table, name, &r->learner[m]);
	}
	put_line(&s->table, "total", &r->total);
	cmd_table_print(&s->table);
	cmd_debug("%" PRIu64 " rounds, %" PRIu64 " merges in %s", r->rounds,
		r->merges, dl_human_duration(took, r->ended_ns));
}

int sim_fleet(int argc, char **argv)
{
	struct settings s = {
		.each = {.jitter = 0.05,
			.tokens = TOKENS,
			.delay_ns = DL_SECOND / 50,
			.transfer_ns = DL_SECOND / 20},
		.step_time = "1s",
		.table.column = columns,
	};
	struct dl_fleet_learner *learner;
	struct dl_fleet_result r;
	struct sim_tape tape;
	struct dl_err e;
	int status = DL_OK;

	parse(&s, argc, argv);
	s.fleet.learner = learner = make_learners(&s);
	if (s.tape)
		sim_tape_begin(&tape, &s.fleet);
	dl_fleet_run(&s.fleet, &r);
	print(&s, &r);
	if (s.tape && sim_tape_end(&tape, s.tape, &e))
		status = cmd_fail(&e);
	if (r.fault[0]) {
		cmd_warn("a rule is broken: %s", r.fault);
		status = DL_SOFTWARE;
	} else {
		status = cmd_flush();
	}
	dl_fleet_result_release(&r);
	free(learner);
	free(s.kill);
	return status;
}
