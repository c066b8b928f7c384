/*
 * The options of a run, which dl-sync serve and dl-sync run have in common: a
 * preset of the family that PAPER.md's last table lists, each setting of which
 * can be given by itself.
 */
#ifndef CMD_SYNC_OPTIONS_H
#define CMD_SYNC_OPTIONS_H

#include <getopt.h>

#include "merge/outer.h"
#include "sync/sync.h"
#include "tensor/quant.h"

struct sync_options {
	const char *store, *model, *layout, *run, *output;
	const char *layout_hash; /* that a new store must have; NULL: any */
	uint32_t fragments;	      /* of a layout planned here */
	uint64_t h;		      /* 0: the store's, or the preset's */
	struct dl_sync_config config; /* P and H aside */
	int min_h_given;
	enum dl_rule rule; /* DL_MEAN: in place of rda */
	struct dl_outer outer;
	enum dl_codec global; /* of updates; f32: globals are values */
	const char *apply;    /* what learners are told */
	int wait;
	int64_t dead_ns; /* a silent learner */
	unsigned threads;
};

enum {
	SYNC_STORE = 256,
	SYNC_LAYOUT,
	SYNC_RUN,
	SYNC_GLOBAL,
	SYNC_PRESET,
	SYNC_FRAGMENTS,
	SYNC_TAU,
	SYNC_QUORUM,
	SYNC_GRACE,
	SYNC_GAMMA,
	SYNC_MIN_H,
	SYNC_LATE,
	SYNC_BELOW,
	SYNC_RULE,
	SYNC_OUTER_LR,
	SYNC_MOMENTUM,
	SYNC_NESTEROV,
	SYNC_NO_NESTEROV,
	SYNC_APPLY,
	SYNC_WAIT,
	SYNC_NO_WAIT,
	SYNC_TOKENS,
	SYNC_STEPS,
	SYNC_MAX_NORM,
	SYNC_MAX_RATE,
	SYNC_STALL,
	SYNC_DEAD,
	SYNC_END_TIMEOUT,
	SYNC_THREADS,
	SYNC_OPTIONS /* the first code that is free */
};

/* Entries of getopt_long's tables for all of them. */
#define SYNC_SHORT "H:o:"
#define SYNC_LONG \
	{"store", required_argument, NULL, SYNC_STORE}, \
	{"h", required_argument, NULL, 'H'}, \
	{"layout", required_argument, NULL, SYNC_LAYOUT}, \
	{"run", required_argument, NULL, SYNC_RUN}, \
	{"global", required_argument, NULL, SYNC_GLOBAL}, \
	{"preset", required_argument, NULL, SYNC_PRESET}, \
	{"fragments", required_argument, NULL, SYNC_FRAGMENTS}, \
	{"tau", required_argument, NULL, SYNC_TAU}, \
	{"quorum", required_argument, NULL, SYNC_QUORUM}, \
	{"grace", required_argument, NULL, SYNC_GRACE}, \
	{"gamma", required_argument, NULL, SYNC_GAMMA}, \
	{"min-h", required_argument, NULL, SYNC_MIN_H}, \
	{"late", required_argument, NULL, SYNC_LATE}, \
	{"below-quorum", required_argument, NULL, SYNC_BELOW}, \
	{"rule", required_argument, NULL, SYNC_RULE}, \
	{"outer-lr", required_argument, NULL, SYNC_OUTER_LR}, \
	{"momentum", required_argument, NULL, SYNC_MOMENTUM}, \
	{"nesterov", no_argument, NULL, SYNC_NESTEROV}, \
	{"no-nesterov", no_argument, NULL, SYNC_NO_NESTEROV}, \
	{"apply", required_argument, NULL, SYNC_APPLY}, \
	{"wait", no_argument, NULL, SYNC_WAIT}, \
	{"no-wait", no_argument, NULL, SYNC_NO_WAIT}, \
	{"tokens", required_argument, NULL, SYNC_TOKENS}, \
	{"steps", required_argument, NULL, SYNC_STEPS}, \
	{"max-norm", required_argument, NULL, SYNC_MAX_NORM}, \
	{"max-rate", required_argument, NULL, SYNC_MAX_RATE}, \
	{"stall", required_argument, NULL, SYNC_STALL}, \
	{"dead", required_argument, NULL, SYNC_DEAD}, \
	{"end-timeout", required_argument, NULL, SYNC_END_TIMEOUT}, \
	{"threads", required_argument, NULL, SYNC_THREADS}, \
	{"output", required_argument, NULL, 'o'}

/* The defaults: the preset in the arguments, wherever it stands among the
 * options that getopt_long is given. */
void sync_options_begin(struct sync_options *o, int argc, char **argv,
	const char *shorts, const struct option *longs);
/* Takes an option that getopt_long returned: 1, or 0 when it is none of these;
 * exits 64 when its argument is bad. */
int sync_option(struct sync_options *o, int opt);

#endif
