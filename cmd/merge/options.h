/*
 * The options of dl-sync merge.
 */
#ifndef CMD_MERGE_OPTIONS_H
#define CMD_MERGE_OPTIONS_H

#include "merge/outer.h"

struct merge_weight { /* -w */
	char *name;
	double weight;
};

struct merge_options {
	const char *layout, *state;  /* NULL: none */
	const char *values, *update; /* where they go; NULL: nowhere */
	const char *base;
	char **delta;
	size_t deltas;
	enum dl_rule rule; /* DL_MEAN: in place of rda */
	struct dl_outer outer;
	struct merge_weight *weight;
	size_t weights;
	unsigned threads;
	int zstd; /* level of what is written, the state aside */
};

/* Reads them from the arguments after `merge`; exits 64 when they are bad. */
void merge_options_read(struct merge_options *o, int argc, char **argv);
void merge_options_release(struct merge_options *o);

#endif
