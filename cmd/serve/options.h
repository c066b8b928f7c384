/*
 * The options of dl-sync serve: those of the run, and its links.
 */
#ifndef CMD_SERVE_OPTIONS_H
#define CMD_SERVE_OPTIONS_H

#include "cmd/sync/options.h"
#include "cmd/link.h"
#include "link/address.h"

enum {
	LISTEN_MAX = 8,
	LEARNERS = 1024,      /* unless --max-learners is given */
	LEARNERS_MAX = 65536, /* what it can be */
};

struct checkpoint_options {
	const char *folder;   /* NULL: none are made but on demand */
	int64_t every_ns;     /* 0: not by time */
	uint64_t every_steps; /* of the clock; 0: not by steps */
	uint64_t keep;	      /* the newest of this run; from 1 */
};

struct serve_options {
	struct sync_options sync;
	const char *from; /* a checkpoint, or a folder of them; NULL: none */
	const char *tape;
	const char *authorized; /* NULL: nobody comes by a session */
	uint64_t learners;	/* connected at once, at most */
	const char *record;	/* a folder; NULL: pushes are not kept */
	struct checkpoint_options checkpoint;
	uint64_t commit; /* after so many merges; 1: before each is told of */
	struct dl_address listen[LISTEN_MAX];
	size_t listens;
	struct dl_tcp tcp;	  /* of those that are tcp */
	struct data_options data; /* streams, window: at most, of a learner;
				   * rate: of all that is sent */
	enum dl_insecure insecure;
	const char *key_file; /* NULL: no sessions */
	struct dl_key *key;   /* read from it */
};

/* Reads them from the arguments after `serve`; exits 64 when they are bad. */
void serve_options_read(struct serve_options *o, int argc, char **argv);

#endif
