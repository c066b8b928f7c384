/*
 * The store: where a syncer's state outlives the syncer (dl-store(5)).
 *
 *	global/P.E.N    values of fragment P as made at version E.N, a record
 *	momentum/P.E.N  its outer optimizer's momentum, a record
 *	error/P.E.N     what its updates still owe, a record; only in runs whose
 *	                updates have a narrow codec
 *	layout.tsv      the layout
 *	lock            held by the one process that may write
 *	HEAD            names all of it, with everything a restart needs
 *
 * Files other than HEAD never change under their names, and HEAD is replaced by
 * rename: it is the only commit point. What HEAD does not name does not exist,
 * and is removed when the store is opened to be written.
 *
 * A failure leaves the committed state as it was; the same commit may be
 * tried again. 73 and 74 name the path.
 */
#ifndef DL_STATE_STORE_H
#define DL_STATE_STORE_H

#include <stdint.h>

#include "base/err.h"
#include "sync/sync.h"
#include "tensor/layout.h"

struct dl_store;
struct dl_head_files;

/* What a run cannot change between two starts; P follows from the layout. */
struct dl_store_run {
	char name[DL_NAME_MAX + 1]; /* a good name */
	uint64_t h;
};

/*
 * Makes a store in folder (made if missing; 73 when it holds a HEAD already):
 * saved is dl_sync_save's for a new core, values[p] the packed f32 array of
 * fragment p, its momentum zero. Nothing is left open.
 */
int dl_store_create(const char *folder, const struct dl_store_run *run,
	const struct dl_layout *layout, const struct dl_sync_saved *saved,
	const float *const *values, struct dl_err *e);

enum dl_store_mode {
	DL_STORE_LOOK, /* reads, takes no lock, changes nothing */
	DL_STORE_OWN   /* the one owner: may commit */
};

/*
 * Opens folder: 66 when it holds no store, 65 when HEAD or the layout are
 * damaged, 75 when another process owns it (locks are a process's: opening
 * twice in one would give up the first). *s is NULL on failure.
 */
int dl_store_open(struct dl_store **s, const char *folder,
	enum dl_store_mode mode, struct dl_err *e);
void dl_store_close(struct dl_store *s); /* NULL is fine */

/* What HEAD says; valid until the next commit or close. */
const struct dl_store_run *dl_store_run(const struct dl_store *s);
const struct dl_layout *dl_store_layout(const struct dl_store *s);
const struct dl_sync_saved *dl_store_saved(const struct dl_store *s);

/* The files of fragment p (state/head.h). */
const struct dl_head_files *dl_store_files(
	const struct dl_store *s, uint32_t p);

/*
 * Reads fragment p into packed f32 arrays of layout->fragment[p].elements;
 * either may be NULL. 65 when a file is not, byte for byte, the one that was
 * committed; 75 when the owner has replaced it meanwhile (only DL_STORE_LOOK).
 */
int dl_store_load(struct dl_store *s, uint32_t p, float *values,
	float *momentum, struct dl_err *e);

/* The same of its error; DL_NO when it has none. */
int dl_store_load_error(
	struct dl_store *s, uint32_t p, float *error, struct dl_err *e);

/*
 * Commits fragment p at version saved->fragment[p].version with all of saved
 * (dl_sync_save's for p); error NULL: it has none, even if it had one. Durable
 * when it returns 0.
 */
int dl_store_commit(struct dl_store *s, uint32_t p, const float *values,
	const float *momentum, const float *error,
	const struct dl_sync_saved *saved, struct dl_err *e);

/*
 * Commits saved alone: the risen epoch after dl_sync_restore. Files keep the
 * names of the versions at which they were made.
 */
int dl_store_commit_saved(struct dl_store *s, const struct dl_sync_saved *saved,
	struct dl_err *e);

/*
 * Pins what HEAD names now: commits leave its files alone until the unpin,
 * which removes those that are not of the store any more. A pin does not
 * change, so another thread may read it meanwhile (checkpoint.h). Only of a
 * store that is owned; unpinned before it is closed.
 */
struct dl_pin;
struct dl_pin *dl_store_pin(struct dl_store *s);
void dl_store_unpin(struct dl_store *s, struct dl_pin *pin);

const struct dl_store_run *dl_pin_run(const struct dl_pin *pin);
const struct dl_sync_saved *dl_pin_saved(const struct dl_pin *pin);

#endif
