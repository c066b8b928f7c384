/* dl-sim bandwidth: what links must carry, and what slow ones cost. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/codec.h"
#include "cmd/sim-list.h"
#include "cmd/sim-options.h"
#include "cmd/sim.h"
#include "cmd/table.h"
#include "sim/bandwidth.h"
#include "sim/measured.h"

enum { FRAGMENTS_MOST = 100000, LEARNERS_MOST = 100000 };

enum {
	MODE = 256,
	PUSH,
	GLOBAL,
	GRADIENT,
	SITES,
	TAU,
	BACKWARD,
	LINK,
	MEASURED,
	WAIT,
};

static const struct option options[] = {
	{"mode", required_argument, NULL, MODE},
	SIM_TRAFFIC_LONG,
	{"push", required_argument, NULL, PUSH},
	{"global", required_argument, NULL, GLOBAL},
	{"gradient", required_argument, NULL, GRADIENT},
	{"sites", required_argument, NULL, SITES},
	{"learners", required_argument, NULL, 'm'},
	{"fragments", required_argument, NULL, 'n'},
	{"h", required_argument, NULL, 'H'},
	{"tau", required_argument, NULL, TAU},
	{"step-time", required_argument, NULL, 't'},
	{"backward", required_argument, NULL, BACKWARD},
	{"utilisation", required_argument, NULL, 'u'},
	{"link", required_argument, NULL, LINK},
	{"measured", required_argument, NULL, MEASURED},
	{"wait", no_argument, NULL, WAIT},
	CMD_TABLE_LONG,
	CMD_LONG,
	{0},
};

static const char *const columns[] = {"system", "push", "sites", "gbit",
	"utilisation", "carried", "sustained_gbit", "mean_gbit", "peak_gbit",
	"effective_h", "takes", "hidden", "exposed", "behind", NULL};

static const char *const measured_columns[] = {"learners", "fragments", "h",
	"tau", "values", "push_bits", "global_bits", "step_time", "gbit",
	"measured", "predicted", "correction", "measured_gbit",
	"predicted_gbit", NULL};

struct settings {
	struct dl_bandwidth_config c;
	struct cmd_table table;
	struct sim_list modes, codecs, sites, utilisations, links;
	enum dl_codec gradient, global;
	int same;	      /* global values have the codec of pushes */
	const char *measured; /* a tape, of learners that waited or not */
	int wait;
};

static const double giga = 1e9;

static double mode(const char *option, const char *arg)
{
	for (int i = 0; i < DL_BANDWIDTH_SYSTEMS; i++)
		if (!strcmp(arg, dl_bandwidth_names[i]))
			return i;
	cmd_usage("%s %s: not data-parallel, diloco, streaming or decoupled",
		option, arg);
}

static double share(const char *option, const char *arg)
{
	return cmd_double(option, arg, 0.01, 100) / 100;
}

static void parse_rest(struct settings *s, int opt)
{
	switch (opt) {
	case PUSH:
		sim_list(&s->codecs, "--push", optarg, sim_codec);
		break;
	case GLOBAL:
		s->global = cmd_codec("--global", optarg);
		s->same = 0;
		break;
	case GRADIENT:
		s->gradient = cmd_codec("--gradient", optarg);
		break;
	case MEASURED:
		s->measured = optarg;
		break;
	case WAIT:
		s->wait = 1;
		break;
	default:
		if (!cmd_table_option(&s->table, opt))
			cmd_common_option(opt);
	}
}

/* Options of the method, and of the machines and links. */
static int parse_run(struct dl_bandwidth_config *c, int opt)
{
	switch (opt) {
	case 'm':
		c->learners = (uint32_t)cmd_u64(
			"--learners", optarg, 1, LEARNERS_MOST);
		break;
	case 'n':
		c->fragments = (uint32_t)cmd_u64(
			"--fragments", optarg, 1, FRAGMENTS_MOST);
		break;
	case 'H':
		c->h = cmd_u64("--h", optarg, 1, INT64_MAX);
		break;
	case TAU:
		c->tau = cmd_u64("--tau", optarg, 0, INT64_MAX);
		break;
	case 't':
		c->step = sim_period("--step-time", optarg);
		break;
	case BACKWARD:
		c->backward = cmd_double("--backward", optarg, 0, 1);
		break;
	default:
		return sim_traffic_option(c, opt);
	}
	return 1;
}

static int parse_list(struct settings *s, int opt)
{
	switch (opt) {
	case MODE:
		sim_list(&s->modes, "--mode", optarg, mode);
		break;
	case SITES:
		sim_list(&s->sites, "--sites", optarg, sim_count);
		break;
	case 'u':
		sim_list(&s->utilisations, "--utilisation", optarg, share);
		break;
	case LINK:
		sim_list(&s->links, "--link", optarg, sim_link);
		break;
	default:
		return 0;
	}
	return 1;
}

/* What was not said: of the paper's run, or of a tape's, for which the model
 * begins with nothing that the tape does not tell. */
static void fill(struct settings *s)
{
	struct dl_bandwidth_config usual;

	dl_bandwidth_config_default(&usual);
	if (s->c.latency < 0)
		s->c.latency = s->measured ? 0 : usual.latency;
	if (s->c.merge < 0)
		s->c.merge = s->measured ? 0 : usual.merge;
	if (s->c.step <= 0 && !s->measured)
		s->c.step = usual.step;
}

static void parse(struct settings *s, int argc, char **argv)
{
	int opt;

	dl_bandwidth_config_default(&s->c);
	s->c.latency = s->c.merge = -1;
	s->c.step = 0;
	while ((opt = getopt_long(argc, argv, CMD_SHORT "m:n:H:t:u:", options,
			NULL)) != -1)
		if (!parse_list(s, opt) && !parse_run(&s->c, opt))
			parse_rest(s, opt);
	if (optind < argc)
		cmd_usage("%s: nothing is read", argv[optind]);
	for (size_t i = 0; i < s->sites.n; i++)
		if (s->sites.item[i] < 2)
			cmd_usage("--sites: one site exchanges nothing");
	if (s->measured && s->links.n != 1)
		cmd_usage("--measured: say what the --link was");
	if (s->wait && !s->measured)
		cmd_usage("--wait: without --measured");
	fill(s);
}

static void put(struct cmd_table *t, double v)
{
	if (isfinite(v))
		cmd_table_number(t, "%.4g", v);
	else
		cmd_table_none(t);
}

static void put_behind(
	struct cmd_table *t, enum dl_bandwidth_system system, uint64_t tau)
{
	char text[32];

	if (system == DL_DATA_PARALLEL) {
		cmd_table_word(t, "backward pass");
		return;
	}
	if (system == DL_DILOCO)
		tau = 0;
	snprintf(text, sizeof text, "%" PRIu64 " step%s", tau,
		tau == 1 ? "" : "s");
	cmd_table_word(t, tau ? text : "nothing");
}

/* A line: what that link, of so many bits a second, comes to. */
static void put_line(struct settings *s, const struct dl_traffic *tr,
	enum dl_bandwidth_system system, double rate, double wanted)
{
	struct cmd_table *t = &s->table;
	double takes = dl_traffic_takes(tr, rate), h = (double)s->c.h;

	if (system == DL_DATA_PARALLEL)
		h = 1;
	if (system == DL_DECOUPLED)
		h *= dl_traffic_stretch(tr, rate);
	put(t, rate / giga);
	put(t, 100 * dl_traffic_utilisation(tr, rate));
	put(t, 100 * dl_traffic_carried(tr, rate));
	put(t, dl_traffic_sustained(tr, wanted) / giga);
	put(t, dl_traffic_mean(tr) / giga);
	put(t, tr->peak / giga);
	put(t, h);
	put(t, takes);
	put(t, tr->hidden);
	put(t, fmax(takes - tr->hidden, 0));
	put_behind(t, system, s->c.tau);
}

static void put_system(
	struct settings *s, enum dl_bandwidth_system system, enum dl_codec push)
{
	const struct sim_list *each = s->links.n ? &s->links : &s->utilisations;
	struct dl_traffic tr;

	s->c.gradient = sim_codec_bits(s->gradient);
	s->c.up = sim_codec_bits(push);
	s->c.down = sim_codec_bits(s->same ? push : s->global);
	dl_traffic_of(&tr, &s->c, system);
	for (size_t i = 0; i < each->n; i++) {
		double wanted = s->utilisations.item[s->links.n ? 0 : i];
		double rate = s->links.n ? s->links.item[i]
					 : dl_traffic_need(&tr, wanted);

		cmd_table_word(&s->table, dl_bandwidth_names[system]);
		cmd_table_word(&s->table,
			dl_codec_name(system == DL_DATA_PARALLEL ? s->gradient
								 : push));
		cmd_table_number(&s->table, "%u", s->c.sites);
		put_line(s, &tr, system, rate, wanted);
	}
}

static void put_measured(struct settings *s, const struct dl_measured *m)
{
	struct cmd_table *t = &s->table;
	struct dl_traffic tr;
	double rate = s->links.item[0], predicted = 1;
	double bytes = fmax(m->bytes_up, m->bytes_down);

	/* Each learner has a link to a syncer. */
	s->c.apart = 1;
	s->c.learners = 1;
	dl_traffic_of(&tr, &s->c, DL_DECOUPLED);
	/* They wait until a push is merged, not for what comes down. */
	tr.serial *= s->c.up / (s->c.up + s->c.down);
	if (s->wait)
		predicted = dl_traffic_carried(&tr, rate);
	put(t, m->learners);
	put(t, s->c.fragments);
	put(t, (double)s->c.h);
	put(t, (double)s->c.tau);
	cmd_table_number(t, "%.0f", s->c.values);
	put(t, s->c.up);
	put(t, s->c.down);
	put(t, s->c.step);
	put(t, rate / giga);
	put(t, 100 * m->utilisation);
	put(t, 100 * predicted);
	put(t, predicted / m->utilisation);
	put(t, 8 * bytes / m->seconds / giga);
	put(t, predicted * dl_traffic_mean(&tr) / giga);
}

static int measured(struct settings *s)
{
	struct dl_measured m;
	struct dl_err e;
	const char *place = "standard input";
	int fd = STDIN_FILENO, rc = 0;

	if (strcmp(s->measured, "-") != 0) {
		place = s->measured;
		rc = dl_open_read(place, &fd, &e);
	}
	if (!rc)
		rc = dl_measured_read(&m, &s->c, fd, place, &e);
	if (rc)
		return cmd_fail(&e);
	s->table.column = measured_columns;
	put_measured(s, &m);
	cmd_table_print(&s->table);
	return cmd_flush();
}

static void put_all(struct settings *s)
{
	for (size_t i = 0; i < s->sites.n; i++)
		for (size_t k = 0; k < s->modes.n; k++) {
			int system = (int)s->modes.item[k];
			size_t codecs =
				system == DL_DATA_PARALLEL ? 1 : s->codecs.n;

			s->c.sites = (uint32_t)s->sites.item[i];
			for (size_t j = 0; j < codecs; j++)
				put_system(s, (enum dl_bandwidth_system)system,
					(enum dl_codec)s->codecs.item[j]);
		}
}

int sim_bandwidth(int argc, char **argv)
{
	struct settings s = {.table.column = columns,
		.modes = {{DL_DATA_PARALLEL, DL_DILOCO, DL_STREAMING,
				  DL_DECOUPLED},
			DL_BANDWIDTH_SYSTEMS},
		.codecs = {{DL_CODEC_BF16, DL_CODEC_INT4}, 2},
		.sites = {{2}, 1},
		.utilisations = {{0.9}, 1},
		.gradient = DL_CODEC_BF16,
		.same = 1};

	parse(&s, argc, argv);
	if (s.measured)
		return measured(&s);
	put_all(&s);
	cmd_table_print(&s.table);
	return cmd_flush();
}
