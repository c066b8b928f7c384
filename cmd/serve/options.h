/*
 * The options of dl-sync serve: a preset of the family that PAPER.md's last
 * table lists, each setting of which can be given by itself.
 */
#ifndef CMD_SERVE_OPTIONS_H
#define CMD_SERVE_OPTIONS_H

#include "link/address.h"
#include "merge/outer.h"
#include "sync/sync.h"

enum { LISTEN_MAX = 8 };

struct serve_options {
	const char *store, *model, *layout, *run, *tape, *output;
	struct dl_address listen[LISTEN_MAX];
	size_t listens;
	enum dl_insecure insecure;
	uint32_t fragments;	      /* of a layout planned here */
	uint64_t h;		      /* 0: the store's, or the preset's */
	struct dl_sync_config config; /* P and H aside */
	int min_h_given;
	enum dl_rule rule; /* DL_MEAN: in place of rda */
	struct dl_outer outer;
	const char *apply; /* what learners are told */
	int wait;
	int64_t dead_ns; /* a silent connection */
	unsigned threads;
};

/* Reads them from the arguments after `serve`; exits 64 when they are bad. */
void serve_options_read(struct serve_options *o, int argc, char **argv);

#endif
