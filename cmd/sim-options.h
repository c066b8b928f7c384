/*
 * Options that jobs of dl-sim have in common: how machines fail, and what
 * crosses links.
 */
#ifndef CMD_SIM_OPTIONS_H
#define CMD_SIM_OPTIONS_H

#include "sim/bandwidth.h"
#include "sim/goodput.h"
#include "tensor/quant.h"

enum {
	SIM_SLICE = 0x51a0,
	SIM_INTERRUPTED,
	SIM_SPREAD,
	SIM_DOWN,
	SIM_UP,
	SIM_RETURN,
	SIM_GATHER,
	SIM_MODEL,
	SIM_LAYOUT,
	SIM_LARGEST,
	SIM_APART,
	SIM_DELAY,
	SIM_MERGE,
};

/* clang-format off */
#define SIM_MACHINE_LONG \
	{"slice", required_argument, NULL, SIM_SLICE}, \
	{"interrupted", required_argument, NULL, SIM_INTERRUPTED}, \
	{"spread", required_argument, NULL, SIM_SPREAD}, \
	{"scale-down", required_argument, NULL, SIM_DOWN}, \
	{"scale-up", required_argument, NULL, SIM_UP}, \
	{"return", required_argument, NULL, SIM_RETURN}, \
	{"gather", required_argument, NULL, SIM_GATHER}
#define SIM_TRAFFIC_LONG \
	{"model", required_argument, NULL, SIM_MODEL}, \
	{"layout", required_argument, NULL, SIM_LAYOUT}, \
	{"largest", required_argument, NULL, SIM_LARGEST}, \
	{"apart", no_argument, NULL, SIM_APART}, \
	{"delay", required_argument, NULL, SIM_DELAY}, \
	{"merge", required_argument, NULL, SIM_MERGE}
/* clang-format on */

/* Take an option of these: 1, or 0 when it is none of them. */
int sim_machine_option(struct dl_goodput_config *c, int opt);
int sim_traffic_option(struct dl_bandwidth_config *c, int opt);

/* Seconds. */
double sim_time(const char *option, const char *arg);
double sim_period(const char *option, const char *arg); /* above 0 */

/* Items of lists (sim-list.h): chips, a codec, bits a second. */
double sim_chips(const char *option, const char *arg);
double sim_codec(const char *option, const char *arg);
double sim_link(const char *option, const char *arg);

/* Bits of a value, with its part of the scale. */
double sim_codec_bits(enum dl_codec c);

#endif
