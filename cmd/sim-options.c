#include "cmd/sim-options.h"

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/codec.h"
#include "tensor/layout.h"

static const double chips_most = 1e9;

double sim_time(const char *option, const char *arg)
{
	return (double)cmd_duration(option, arg) / DL_SECOND;
}

double sim_period(const char *option, const char *arg)
{
	return (double)cmd_period(option, arg) / DL_SECOND;
}

double sim_chips(const char *option, const char *arg)
{
	uint64_t v = cmd_size(option, arg);

	if (!v || (double)v > chips_most)
		cmd_usage("%s %s: not from 1 to %.0f", option, arg, chips_most);
	return (double)v;
}

double sim_codec(const char *option, const char *arg)
{
	return cmd_codec(option, arg);
}

double sim_link(const char *option, const char *arg)
{
	return 8 * (double)cmd_rate(option, arg);
}

double sim_codec_bits(enum dl_codec c)
{
	uint64_t n = DL_QUANT_BLOCK;
	uint64_t bytes = dl_codec_bytes(c, n) + 2 * dl_codec_scales(c, n, n);

	return 8 * (double)bytes / (double)n;
}

int sim_machine_option(struct dl_goodput_config *c, int opt)
{
	switch (opt) {
	case SIM_SLICE:
		c->slice = sim_chips("--slice", optarg);
		break;
	case SIM_INTERRUPTED:
		c->interrupted = sim_period("--interrupted", optarg);
		break;
	case SIM_SPREAD:
		c->spread = cmd_double("--spread", optarg, 0, 0.99);
		break;
	case SIM_DOWN:
		c->down = sim_time("--scale-down", optarg);
		break;
	case SIM_UP:
		c->up = sim_time("--scale-up", optarg);
		break;
	case SIM_RETURN:
		c->back = sim_time("--return", optarg);
		break;
	case SIM_GATHER:
		c->gather = sim_time("--gather", optarg);
		break;
	default:
		return 0;
	}
	return 1;
}

static void read_layout(struct dl_bandwidth_config *c)
{
	struct dl_layout l;
	struct dl_err e;
	uint64_t all = 0, most = 0;

	if (dl_layout_read(&l, optarg, &e))
		cmd_die(e.code, "%s", e.text);
	for (uint32_t p = 0; p < l.fragments; p++) {
		all += l.fragment[p].elements;
		if (l.fragment[p].elements > most)
			most = l.fragment[p].elements;
	}
	if (!all)
		cmd_die(DL_DATA, "%s: has no values", optarg);
	c->values = (double)all;
	c->fragments = l.fragments;
	c->largest = (double)most * l.fragments / (double)all;
	dl_layout_release(&l);
}

int sim_traffic_option(struct dl_bandwidth_config *c, int opt)
{
	switch (opt) {
	case SIM_MODEL:
		c->values = (double)cmd_size("--model", optarg);
		if (c->values < 1)
			cmd_usage("--model %s: has no values", optarg);
		break;
	case SIM_LAYOUT:
		read_layout(c);
		break;
	case SIM_LARGEST:
		c->largest = cmd_double("--largest", optarg, 1, 1e6);
		break;
	case SIM_APART:
		c->apart = 1;
		break;
	case SIM_DELAY:
		c->latency = sim_time("--delay", optarg);
		break;
	case SIM_MERGE:
		c->merge = sim_time("--merge", optarg);
		break;
	default:
		return 0;
	}
	return 1;
}
