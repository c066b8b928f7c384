/*
 * The options of dl-sync run: those of the run, and its spool.
 */
#ifndef CMD_RUN_OPTIONS_H
#define CMD_RUN_OPTIONS_H

#include "cmd/sync/options.h"

struct run_options {
	struct sync_options sync; /* store: SPOOL/store unless given */
	const char *spool;
	const char *record; /* a folder for every push; NULL: none */
	int64_t stale_ns; /* what is not whole for so long is set apart */
	int64_t keep_ns;  /* how long what is old stays for its readers */
	char *own_store;  /* private */
};

/* Reads them from the arguments after `run`; exits 64 when they are bad. */
void run_options_read(struct run_options *o, int argc, char **argv);
void run_options_release(struct run_options *o);

#endif
