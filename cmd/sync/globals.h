/*
 * The global parameters: values and momentum of each fragment, the pushes that
 * wait to be merged into them, what goes to learners, and the store that
 * outlives all of it.
 *
 * Memory: values and momentum, with a narrow codec of updates an error and the
 * newest update, a second copy of fragments that are being sent while the next
 * version is made, and the pushes held.
 */
#ifndef CMD_SYNC_GLOBALS_H
#define CMD_SYNC_GLOBALS_H

#include "base/pool.h"
#include "cmd/shelf.h"
#include "cmd/sync/options.h"
#include "cmd/sync/pushes.h"
#include "cmd/sync/update.h"
#include "merge/step.h"
#include "state/store_write.h"

struct globals {
	struct dl_pool *pool;
	struct dl_store *store;
	const struct dl_layout *layout;
	struct dl_outer outer;
	struct dl_quant quant;	     /* of updates; f32: values go whole */
	struct dl_segment **segment; /* P lists */
	size_t *segments;	     /* P */
	unsigned char *loaded;	     /* P flags */
	struct shared **values;	     /* P: packed f32 arrays */
	float **momentum;	     /* P */
	float **error;		     /* P: what updates owe; NULL: nothing */
	struct update *update;	     /* P: the newest of this process */
	struct dl_alike *alike;	     /* P: what was merged last */
	struct held **held;	     /* P: by whom; NULL: nobody */
	struct pushes pushes;
	struct shelf shelf;
};

/* Opens the store of the options and loads what it holds. */
int globals_open(
	struct globals *g, const struct sync_options *o, struct dl_err *e);
/* Opens it only; a fragment is to be loaded before it is read or merged. */
int globals_begin(
	struct globals *g, const struct sync_options *o, struct dl_err *e);
/* Loads what the store holds of fragment p, unless that was done. */
int globals_load(struct globals *g, uint32_t p, struct dl_err *e);
int globals_load_all(struct globals *g, struct dl_err *e);
void globals_close(struct globals *g);

/* Fragment p as it is: what is in files stays so, whatever is merged, until it
 * is let go. */
struct held {
	struct dl_store_write files;
	struct shared *values; /* private from here */
	int left; /* the next merge has left momentum and error behind */
};
void globals_hold(struct globals *g, uint32_t p, struct held *h);
void globals_let_go(struct globals *g, struct held *h);

/* The values of fragment p; they move with its next merge. */
const float *globals_values(const struct globals *g, uint32_t p);

/*
 * Merges the parts of DL_ACT_MERGE and makes the outer step, in memory; with a
 * narrow codec its update too. DL_NO when the values stay as they are, with the
 * reason.
 */
int globals_merge(
	struct globals *g, const struct dl_sync_action *a, struct dl_err *e);
/* Commits fragment p with saved, which is dl_sync_save's for it. */
int globals_commit(struct globals *g, uint32_t p,
	const struct dl_sync_saved *saved, struct dl_err *e);

/* The update that leads to that version of p, or NULL: who is to have that
 * version needs the values. */
const struct update *globals_update(
	const struct globals *g, uint32_t p, struct dl_version version);

/* Writes the model as the layout has it. */
int globals_write_model(
	const struct globals *g, const char *path, struct dl_err *e);

#endif
