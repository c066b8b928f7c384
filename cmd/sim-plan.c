/* dl-sim plan: which learners, quorum, H, tau and codec suit given machines. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/codec.h"
#include "cmd/sim-list.h"
#include "cmd/sim-options.h"
#include "cmd/sim.h"
#include "cmd/table.h"
#include "sim/plan.h"

enum { LEARNERS_MOST = 1000 };

enum {
	CHIPS = 256,
	FRAGMENTS,
	TAU,
	PUSH,
	GLOBAL,
	LINK,
	SITES,
	JITTER,
	TIME,
	SEED,
};

static const struct option options[] = {
	{"chips", required_argument, NULL, CHIPS},
	SIM_MACHINE_LONG,
	SIM_TRAFFIC_LONG,
	{"link", required_argument, NULL, LINK},
	{"sites", required_argument, NULL, SITES},
	{"step-time", required_argument, NULL, 't'},
	{"jitter", required_argument, NULL, JITTER},
	{"learners", required_argument, NULL, 'm'},
	{"quorum", required_argument, NULL, 'k'},
	{"fragments", required_argument, NULL, FRAGMENTS},
	{"h", required_argument, NULL, 'H'},
	{"tau", required_argument, NULL, TAU},
	{"push", required_argument, NULL, PUSH},
	{"global", required_argument, NULL, GLOBAL},
	{"rows", required_argument, NULL, 'n'},
	{"time", required_argument, NULL, TIME},
	{"seed", required_argument, NULL, SEED},
	CMD_TABLE_LONG,
	CMD_LONG,
	{0},
};

static const char *const columns[] = {"learners", "quorum", "fragments", "h",
	"tau", "push", "useful", "goodput", "uptime", "participation", "wasted",
	"sustained_gbit", "mean_gbit", NULL};

struct settings {
	struct dl_plan_given given;
	struct cmd_table table;
	struct sim_list learners, quorums, fragments, h, tau, codecs;
	enum dl_codec global;
	int same; /* global values have the codec of pushes */
	size_t rows;
	/* What was proposed, and the least that anything needs. */
	struct dl_proposal *proposal;
	size_t n;
	double least;
};

static double learners(const char *option, const char *arg)
{
	return (double)cmd_u64(option, arg, 1, LEARNERS_MOST);
}

static double steps(const char *option, const char *arg)
{
	return (double)cmd_u64(option, arg, 1, 1000000);
}

static double overlap(const char *option, const char *arg)
{
	return (double)cmd_u64(option, arg, 0, 1000000);
}

static int parse_choice(struct settings *s, int opt)
{
	switch (opt) {
	case 'm':
		sim_list(&s->learners, "--learners", optarg, learners);
		break;
	case 'k':
		sim_list(&s->quorums, "--quorum", optarg, learners);
		break;
	case FRAGMENTS:
		sim_list(&s->fragments, "--fragments", optarg, sim_count);
		break;
	case 'H':
		sim_list(&s->h, "--h", optarg, steps);
		break;
	case TAU:
		sim_list(&s->tau, "--tau", optarg, overlap);
		break;
	case PUSH:
		sim_list(&s->codecs, "--push", optarg, sim_codec);
		break;
	case GLOBAL:
		s->global = cmd_codec("--global", optarg);
		s->same = 0;
		break;
	default:
		return 0;
	}
	return 1;
}

static void parse_rest(struct settings *s, int opt)
{
	switch (opt) {
	case CHIPS:
		s->given.machines.chips = sim_chips("--chips", optarg);
		break;
	case LINK:
		s->given.link = sim_link("--link", optarg);
		break;
	case SITES:
		s->given.sites = (uint32_t)sim_count("--sites", optarg);
		break;
	case 't':
		s->given.traffic.step = sim_period("--step-time", optarg);
		break;
	case JITTER:
		s->given.jitter = cmd_double("--jitter", optarg, 0, 10);
		break;
	case 'n':
		s->rows = cmd_u64("--rows", optarg, 1, 100000);
		break;
	case TIME:
		s->given.machines.time = sim_period("--time", optarg);
		break;
	case SEED:
		s->given.machines.seed =
			cmd_u64("--seed", optarg, 0, UINT64_MAX);
		break;
	default:
		if (!cmd_table_option(&s->table, opt))
			cmd_common_option(opt);
	}
}

static void parse(struct settings *s, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(argc, argv, CMD_SHORT "m:k:H:t:n:", options,
			NULL)) != -1)
		if (!sim_machine_option(&s->given.machines, opt) &&
			!sim_traffic_option(&s->given.traffic, opt) &&
			!parse_choice(s, opt))
			parse_rest(s, opt);
	if (optind < argc)
		cmd_usage("%s: nothing is read", argv[optind]);
	if (!s->fragments.n)
		s->fragments =
			(struct sim_list){{s->given.traffic.fragments}, 1};
	for (size_t i = 0; i < s->learners.n; i++)
		if (s->learners.item[i] > s->given.machines.chips)
			cmd_usage("--learners %.0f: of %.0f chips",
				s->learners.item[i], s->given.machines.chips);
	if (s->given.machines.chips > 1e6 * s->given.machines.slice)
		cmd_usage("--slice %.0f: too many of them",
			s->given.machines.slice);
}

/* The smallest H with which the link carries it all, whatever tau; 0 for
 * none. */
static uint64_t smallest_h(struct settings *s, struct dl_proposal p)
{
	uint64_t h = 0;

	for (size_t i = 0; i < s->h.n; i++)
		for (size_t k = 0; k < s->tau.n; k++) {
			p.h = (uint64_t)s->h.item[i];
			p.tau = (uint64_t)s->tau.item[k];
			if (dl_proposal_traffic(&p, &s->given) &&
				(!h || p.h < h))
				h = p.h;
			s->least = fmin(s->least, p.need);
		}
	return h;
}

/* With that H, the best tau. */
static void choose_tau(struct settings *s, struct dl_proposal p)
{
	size_t first = s->n;

	p.h = smallest_h(s, p);
	for (size_t k = 0; p.h && k < s->tau.n; k++) {
		p.tau = (uint64_t)s->tau.item[k];
		if (!dl_proposal_traffic(&p, &s->given))
			continue;
		dl_proposal_rounds(&p, &s->given);
		s->proposal =
			dl_resize(s->proposal, s->n + 1, sizeof *s->proposal);
		s->proposal[s->n++] = p;
	}
	if (s->n > first) {
		dl_proposals_sort(s->proposal + first, s->n - first);
		s->n = first + 1;
	}
}

/* All fragments and codecs for so many learners and such a quorum. */
static void propose(struct settings *s, uint32_t m, uint32_t k)
{
	struct dl_proposal p = {.learners = m, .quorum = k};

	dl_proposal_failures(&p, &s->given);
	for (size_t i = 0; i < s->fragments.n; i++)
		for (size_t c = 0; c < s->codecs.n; c++) {
			p.fragments = (uint32_t)s->fragments.item[i];
			p.codec = (unsigned)s->codecs.item[c];
			p.push = sim_codec_bits((enum dl_codec)p.codec);
			p.global = s->same ? p.push : sim_codec_bits(s->global);
			choose_tau(s, p);
		}
}

/* One, half of them and all, unless quorums are given. */
static void propose_quorums(struct settings *s, uint32_t m)
{
	const uint32_t usual[] = {1, (m + 1) / 2, m};

	for (size_t i = 0; i < s->quorums.n; i++)
		if (s->quorums.item[i] <= m)
			propose(s, m, (uint32_t)s->quorums.item[i]);
	for (size_t i = 0; !s->quorums.n && i < 3; i++)
		if (!i || usual[i] > usual[i - 1])
			propose(s, m, usual[i]);
}

static void put_line(struct cmd_table *t, const struct dl_proposal *p)
{
	cmd_table_number(t, "%" PRIu32, p->learners);
	cmd_table_number(t, "%" PRIu32, p->quorum);
	cmd_table_number(t, "%" PRIu32, p->fragments);
	cmd_table_number(t, "%" PRIu64, p->h);
	cmd_table_number(t, "%" PRIu64, p->tau);
	cmd_table_word(t, dl_codec_name((enum dl_codec)p->codec));
	cmd_table_number(t, "%.1f", 100 * p->useful);
	cmd_table_number(t, "%.1f", 100 * p->goodput);
	cmd_table_number(t, "%.2f", 100 * p->uptime);
	cmd_table_number(t, "%.1f", 100 * p->participation);
	cmd_table_number(t, "%.1f", 100 * p->wasted);
	cmd_table_number(t, "%.4g", p->need / 1e9);
	cmd_table_number(t, "%.4g", p->mean / 1e9);
}

static int refuse(const struct settings *s)
{
	if (isfinite(s->least))
		cmd_warn("no choice fits a link of %.4g Gbit/s: the least "
			 "needs %.4g",
			s->given.link / 1e9, s->least / 1e9);
	else
		cmd_warn("no choice fits any link: no overlap is as long as "
			 "--delay and --merge");
	return DL_NO;
}

int sim_plan(int argc, char **argv)
{
	struct settings s = {.table.column = columns,
		.given = {.link = 10e9, .jitter = 0.05},
		.learners = {{2, 4, 8, 16, 32}, 5},
		.h = {{24, 48, 96, 192, 384}, 5},
		.tau = {{1, 2, 4, 8}, 4},
		.codecs = {{DL_CODEC_BF16, DL_CODEC_INT4}, 2},
		.same = 1,
		.rows = 10,
		.least = INFINITY};

	dl_goodput_config_default(&s.given.machines);
	dl_bandwidth_config_default(&s.given.traffic);
	s.given.machines.chips = 150e3;
	s.given.machines.time = 10 * 86400;
	parse(&s, argc, argv);
	for (size_t i = 0; i < s.learners.n; i++)
		propose_quorums(&s, (uint32_t)s.learners.item[i]);
	if (!s.n)
		return refuse(&s);
	dl_proposals_sort(s.proposal, s.n);
	for (size_t i = 0; i < s.n && i < s.rows; i++)
		put_line(&s.table, &s.proposal[i]);
	cmd_table_print(&s.table);
	free(s.proposal);
	return cmd_flush();
}
