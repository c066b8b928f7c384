/*
 * The global parameters: values and momentum of each fragment, the pushes that
 * wait to be merged into them, and the store that outlives both.
 *
 * Memory: values and momentum, a second copy of fragments that are being sent
 * while the next version is made, a merged update, and the pushes held.
 */
#ifndef CMD_SERVE_GLOBALS_H
#define CMD_SERVE_GLOBALS_H

#include "base/pool.h"
#include "cmd/shelf.h"
#include "cmd/sync/options.h"
#include "merge/merge.h"
#include "state/store.h"

/* The values of a fragment at one version; connections read them. */
struct values {
	struct globals *owner;
	uint32_t fragment;
	unsigned readers;
	int old; /* a newer version has taken its place */
	float *data;
};

struct push {
	struct push *next;
	uint64_t id; /* the core's handle */
	uint32_t fragment;
	double norm;
	float *delta;
};

struct globals {
	struct dl_pool *pool;
	struct dl_store *store;
	const struct dl_layout *layout;
	struct dl_outer outer;
	struct dl_segment **segment; /* P lists */
	size_t *segments;	     /* P */
	struct values **values;	     /* P */
	float **momentum;	     /* P */
	float *update;		     /* of the largest fragment */
	size_t update_bytes;
	struct push *push;
	uint64_t pushes; /* ids given out */
	struct shelf shelf;
};

/* Opens the store of the options and loads what it holds. */
int globals_open(
	struct globals *g, const struct sync_options *o, struct dl_err *e);
void globals_close(struct globals *g);

/* A buffer for a push that begins to come; it is dropped or becomes a push. */
struct push *globals_push(struct globals *g, uint32_t fragment);
/* Its bytes are all there: its norm is known, and its id. */
void globals_arrived(struct globals *g, struct push *push);
void globals_drop(struct globals *g, struct push *push);
void globals_release_push(struct globals *g, uint64_t id);

/* Merges the parts of DL_ACT_MERGE and makes the outer step, in memory. DL_NO
 * when the values stay as they are, with the reason. */
int globals_merge(
	struct globals *g, const struct dl_sync_action *a, struct dl_err *e);

/* A connection begins to read the values of p; values_done ends it. */
struct values *globals_read(struct globals *g, uint32_t p);
void values_done(struct values *v);

/* Writes the model as the layout has it. */
int globals_write_model(
	const struct globals *g, const char *path, struct dl_err *e);

#endif
