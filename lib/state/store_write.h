/*
 * A commit in its parts, for who has other things to do meanwhile: files are
 * written, by any thread, and then HEAD is made to name them.
 */
#ifndef DL_STATE_STORE_WRITE_H
#define DL_STATE_STORE_WRITE_H

#include <stdatomic.h>

#include "state/store_folder.h"

/* The files of a fragment, to be written. */
struct dl_store_write {
	uint32_t p;
	/* Its data unchanged till they are written; its out is NULL. */
	struct dl_store_content content;
	/* private */
	struct dl_version version;
	uint64_t step;
	struct dl_head_files files, replaced;
};

/* They are to be what saved says of the fragment: may that be committed? */
int dl_store_write_begin(const struct dl_store *s, struct dl_store_write *w,
	const struct dl_sync_saved *saved, struct dl_err *e);
/* Writes them, durably, by the threads of pool, while s is used. */
int dl_store_write(const struct dl_store *s, struct dl_pool *pool,
	struct dl_store_write *w, struct dl_err *e);
/* Commits those that are written, n of them, with all of saved. */
int dl_store_write_end(struct dl_store *s, struct dl_store_write *w, size_t n,
	const struct dl_sync_saved *saved, struct dl_err *e);
/* Removes what they have replaced, which takes time that nobody has to wait
 * for. Till then it is there, and HEAD does not name it. */
void dl_store_write_tidy(
	const struct dl_store *s, const struct dl_store_write *w, size_t n);
/* Removes what was written for a commit that failed. It stays if HEAD may have
 * come to name it: to be removed when the store is opened. */
void dl_store_write_undo(
	const struct dl_store *s, const struct dl_store_write *w, size_t n);

/* The hashes of a fragment's files, which its commit did not wait for. */
struct dl_store_hashes {
	uint32_t p;
	struct dl_head_files files; /* private */
};

/* Of those that HEAD names now; DL_NO: they are known. */
int dl_store_hash_begin(const struct dl_store *s, struct dl_store_hashes *h);
/* Reads the files, by any thread, while s is used: 75 when *stop came to be
 * set, 66 when they were replaced meanwhile. */
int dl_store_hash(const struct dl_store *s, struct dl_store_hashes *h,
	const atomic_int *stop, struct dl_err *e);
/* They are known, and go to HEAD with the next commit, unless it has other
 * files by now. */
void dl_store_hash_end(struct dl_store *s, const struct dl_store_hashes *h);
/* Writes those that no commit has written. */
int dl_store_hash_save(struct dl_store *s, struct dl_err *e);

#endif
