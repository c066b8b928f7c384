/*
 * dl-sync serve: the syncer's process. This file joins its parts: the core
 * that decides (sync/sync.h), the global parameters, the tape and the peers.
 */
#ifndef CMD_SERVE_SERVER_H
#define CMD_SERVE_SERVER_H

#include "cmd/serve/absent.h"
#include "cmd/serve/checkpoint.h"
#include "cmd/serve/figures.h"
#include "cmd/serve/gate.h"
#include "cmd/serve/options.h"
#include "cmd/serve/peer.h"
#include "cmd/status.h"
#include "cmd/sync/globals.h"
#include "link/authorized.h"
#include "link/errand.h"
#include "link/loop.h"
#include "state/stat.h"

struct server {
	const struct serve_options *options;
	const struct dl_store_run *run;
	const struct dl_layout *layout;
	struct dl_buf layout_text; /* for welcome; NUL at the end */
	struct dl_loop loop;
	struct dl_sync *core;
	struct dl_trail trail; /* of what it has decided */
	struct dl_stat stat;   /* what watchers are told */
	struct figures *figures;
	struct globals globals;
	struct dl_tape *tape; /* NULL: none */
	int tape_lost;	      /* said that it cannot be written */
	struct dl_address address[LISTEN_MAX];
	int listener[LISTEN_MAX];
	int64_t accept_at; /* nobody is taken in before */
	struct gate gate;
	struct peer *peer;
	struct dl_rate rate; /* of data to all peers together */
	uint64_t named;	     /* to joiners, so often */
	unsigned turns;	     /* of peers, who take from it in turn */
	struct dl_authorized_list authorized; /* those who have sessions */
	struct dl_bucket *comings;	      /* of each of their keys */
	uint64_t bytes_in, bytes_out;	      /* of peers that are gone */
	struct commits *commits;
	struct hashing *hashing;
	struct checkpoints *checkpoints; /* NULL: --checkpoint was not given */
	struct dl_errands *packer, *reader; /* NULL: none was needed yet */
	struct copy *copy;		    /* the one under way, or NULL */
	struct cmd_status status;
	int64_t shown_at;
	uint64_t shown_tokens;
	int ending;  /* leave when those that are here have gone */
	int stopped; /* by a signal: nothing is decided any more, and nobody let
		      * in, as nobody would be told */
	int64_t leave_at;
	struct absent absent;
	int64_t expects; /* who asked how to join may come till then */
	int over;
	int code;
};

/* Runs until the end of the run or SIGTERM; an exit code. */
int server_run(const struct serve_options *o);

/* Notes the event on the tape, gives it to the core, and carries out what the
 * core decides. */
void server_event(struct server *s, struct dl_sync_event *ev);

/* Sees that what was noted is on the tape, durably or not. */
void server_save_tape(struct server *s, int durably);

#endif
