/* dl-sim goodput: what failures leave of the chip time that is paid for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/sim-list.h"
#include "cmd/sim-options.h"
#include "cmd/sim.h"
#include "cmd/table.h"
#include "sim/goodput.h"

enum { LEARNERS_MOST = 100000, RUNS_MOST = 10000 };

static const double slices_most = 1e6;

enum {
	MODE = 256,
	CHIPS,
	CHECKPOINT,
	TIME,
	SEED,
};

static const struct option options[] = {
	{"mode", required_argument, NULL, MODE},
	{"chips", required_argument, NULL, CHIPS},
	{"learners", required_argument, NULL, 'm'},
	{"quorum", required_argument, NULL, 'k'},
	{"step-time", required_argument, NULL, 't'},
	SIM_MACHINE_LONG,
	{"checkpoint", required_argument, NULL, CHECKPOINT},
	{"time", required_argument, NULL, TIME},
	{"runs", required_argument, NULL, 'r'},
	{"seed", required_argument, NULL, SEED},
	CMD_TABLE_LONG,
	CMD_LONG,
	{0},
};

static const char *const columns[] = {"mode", "chips", "learners", "goodput",
	"goodput_error", "uptime", "uptime_error", "useful_chip_hours",
	"failures", "changes", "missing", "down", "up", "away", "slow",
	"redone", NULL};

enum mode { RIGID, ELASTIC, DECOUPLED, MODES };
static const char *const mode_names[MODES] = {"rigid", "elastic", "decoupled"};

struct settings {
	struct dl_goodput_config c;
	struct cmd_table table;
	int wanted[MODES]; /* none: all of them */
	struct sim_list chips, learners;
	unsigned runs;
};

static void parse_modes(struct settings *s)
{
	char *text = dl_strdup(optarg), *rest = text, *item;

	while ((item = strsep(&rest, ","))) {
		int i = 0;

		while (i < MODES && strcmp(item, mode_names[i]))
			i++;
		if (i == MODES)
			cmd_usage("--mode %s: not rigid, elastic or decoupled",
				item);
		s->wanted[i] = 1;
	}
	free(text);
}

/* "T" or "T:EVERY". */
static void parse_checkpoint(struct dl_goodput_config *c)
{
	char *text = dl_strdup(optarg), *colon = strchr(text, ':');

	if (colon) {
		*colon = '\0';
		c->every = sim_time("--checkpoint", colon + 1);
	}
	c->checkpoint = sim_time("--checkpoint", text);
	free(text);
}

static void parse_rest(struct settings *s, int opt)
{
	switch (opt) {
	case 't':
		s->c.step = sim_period("--step-time", optarg);
		break;
	case CHECKPOINT:
		parse_checkpoint(&s->c);
		break;
	case MODE:
		parse_modes(s);
		break;
	case CHIPS:
		sim_list(&s->chips, "--chips", optarg, sim_chips);
		break;
	case 'm':
		sim_list(&s->learners, "--learners", optarg, sim_count);
		break;
	case 'k':
		s->c.quorum =
			(uint32_t)cmd_u64("--quorum", optarg, 1, LEARNERS_MOST);
		break;
	case TIME:
		s->c.time = sim_period("--time", optarg);
		break;
	case 'r':
		s->runs = (unsigned)cmd_u64("--runs", optarg, 1, RUNS_MOST);
		break;
	case SEED:
		s->c.seed = cmd_u64("--seed", optarg, 0, UINT64_MAX);
		break;
	default:
		if (!cmd_table_option(&s->table, opt))
			cmd_common_option(opt);
	}
}

static void parse(struct settings *s, int argc, char **argv)
{
	int opt;

	while ((opt = getopt_long(
			argc, argv, CMD_SHORT "m:k:t:r:", options, NULL)) != -1)
		if (!sim_machine_option(&s->c, opt))
			parse_rest(s, opt);
	if (optind < argc)
		cmd_usage("%s: nothing is read", argv[optind]);
	for (int i = 0; i < MODES; i++)
		if (s->wanted[i])
			return;
	for (int i = 0; i < MODES; i++)
		s->wanted[i] = 1;
}

/* Mean and standard error of what several seeds gave. */
struct sample {
	double sum, squares;
};

static void add(struct sample *s, double x)
{
	s->sum += x;
	s->squares += x * x;
}

static double error_of(const struct sample *s, unsigned n)
{
	double mean = s->sum / n, variance = s->squares / n - mean * mean;

	return n > 1 && variance > 0 ? sqrt(variance / (n - 1)) : 0;
}

static void print_line(struct settings *s, enum mode mode)
{
	struct cmd_table *t = &s->table;
	struct sample share[DL_GOODPUT_SHARES] = {{0, 0}}, uptime = {0, 0};
	struct dl_goodput_config c = s->c;
	double hours = 0, failures = 0, changes = 0, n = s->runs;

	for (unsigned i = 0; i < s->runs; i++) {
		struct dl_goodput_result r;

		c.seed = s->c.seed + i;
		dl_goodput_run(&c, &r);
		for (int k = 0; k < DL_GOODPUT_SHARES; k++)
			add(&share[k], 100 * r.share[k]);
		add(&uptime, 100 * r.uptime);
		hours += r.chip_hours;
		failures += (double)r.failures;
		changes += (double)r.changes;
	}
	cmd_table_word(t, mode_names[mode]);
	cmd_table_number(t, "%.0f", c.chips);
	cmd_table_number(t, "%u", c.learners);
	cmd_table_number(t, "%.2f", share[DL_GOODPUT_USEFUL].sum / n);
	cmd_table_number(
		t, "%.3f", error_of(&share[DL_GOODPUT_USEFUL], s->runs));
	cmd_table_number(t, "%.3f", uptime.sum / n);
	cmd_table_number(t, "%.4f", error_of(&uptime, s->runs));
	cmd_table_number(t, "%.0f", hours / n);
	cmd_table_number(t, "%.0f", failures / n);
	cmd_table_number(t, "%.0f", changes / n);
	for (int k = DL_GOODPUT_USEFUL + 1; k < DL_GOODPUT_SHARES; k++)
		cmd_table_number(t, "%.2f", share[k].sum / n);
}

static void print_mode(struct settings *s, enum mode mode)
{
	static const struct sim_list one = {{1}, 1};
	const struct sim_list *m = mode == DECOUPLED ? &s->learners : &one;
	uint32_t quorum = s->c.quorum;

	s->c.rigid = mode == RIGID;
	for (size_t k = 0; k < m->n; k++)
		for (size_t i = 0; i < s->chips.n; i++) {
			s->c.learners = (uint32_t)m->item[k];
			s->c.chips = s->chips.item[i];
			if (s->c.chips < m->item[k])
				cmd_usage("%.0f learners of %.0f chips",
					m->item[k], s->c.chips);
			if (s->c.chips > slices_most * s->c.slice)
				cmd_usage("--slice %.0f: too many of them",
					s->c.slice);
			if (mode == DECOUPLED && quorum > s->c.learners)
				cmd_usage("--quorum %u of %u learners", quorum,
					s->c.learners);
			s->c.quorum = mode == DECOUPLED ? quorum : 1;
			print_line(s, mode);
		}
	s->c.quorum = quorum;
}

int sim_goodput(int argc, char **argv)
{
	struct settings s = {.table.column = columns,
		.chips = {{150e3, 300e3, 600e3, 1.2e6, 2.4e6}, 5},
		.learners = {{8}, 1},
		.runs = 1};

	dl_goodput_config_default(&s.c);
	parse(&s, argc, argv);
	for (int i = 0; i < MODES; i++)
		if (s.wanted[i])
			print_mode(&s, (enum mode)i);
	cmd_table_print(&s.table);
	return cmd_flush();
}
