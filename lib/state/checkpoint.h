/*
 * Checkpoints: what one HEAD of a store names, in one file (dl-checkpoint(5)).
 *
 * A pax tar, compressed by zstd, of regular files only: manifest.json with size
 * and hash of each entry that follows, HEAD, layout.tsv, and each fragment's
 * files, byte for byte as the store has them. What any tar extracts of it is
 * a store. What has another entry, in another order, of another size, kind or
 * hash is refused (65), by the entry's name.
 */
#ifndef DL_STATE_CHECKPOINT_H
#define DL_STATE_CHECKPOINT_H

#include "state/store.h"

struct dl_checkpoint_info {
	struct dl_store_run run;
	uint64_t epoch, clock;
	uint32_t fragments;
	int64_t made;	/* wall-clock nanoseconds */
	uint64_t bytes; /* of all files in it, not compressed */
};

/*
 * Writes what pin names, as made at that wall-clock time, to path, which
 * appears whole or not at all and is durable when it returns 0: 73 or 74, or
 * 65 when a file of the store is no longer what HEAD names. The same HEAD and
 * time give the same bytes. Any thread may do it while the store moves on.
 */
int dl_checkpoint_write(const struct dl_pin *pin, int64_t made,
	const char *path, struct dl_err *e);

/* The same to an open descriptor, which is left open and not synced. */
int dl_checkpoint_pack(
	const struct dl_pin *pin, int64_t made, int fd, struct dl_err *e);

#endif
