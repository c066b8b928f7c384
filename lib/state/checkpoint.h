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
	uint64_t bytes; /* of values, momentum and errors */
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

/* Whoever packs this pin, in another thread, soon ends with 75. */
void dl_checkpoint_abandon(struct dl_pin *pin);

/* 1 when path is a file that begins as checkpoints do; "-" is standard input,
 * if that is a file of which nothing has been read. */
int dl_checkpoint_is(const char *path);

/*
 * What a checkpoint says it is of, from its first entries: 66 when there is no
 * such file, 65 when it is none or damaged, 74. "-" is standard input.
 */
int dl_checkpoint_peek(
	const char *path, struct dl_checkpoint_info *info, struct dl_err *e);
/* The same with the state that HEAD has, dl_sync_saved_release's. */
int dl_checkpoint_saved(const char *path, struct dl_checkpoint_info *info,
	struct dl_sync_saved *saved, struct dl_err *e);
/* The first, and all of it is as its manifest has it. */
int dl_checkpoint_check(
	const char *path, struct dl_checkpoint_info *info, struct dl_err *e);

/*
 * Makes a store of it in folder: 73 when that holds one already. now is the
 * wall-clock time: the epoch rises by the milliseconds since it was made, so
 * that no two that go on from one checkpoint issue the same versions: nobody
 * starts more often than that. It is read twice, since nothing is written
 * before all of it is known to be sound; HEAD is written last.
 */
int dl_checkpoint_unpack(
	const char *path, const char *folder, int64_t now, struct dl_err *e);

/*
 * Its layout, and the values of all fragments as packed arrays of dl_big_alloc;
 * what is there is the caller's to release, also after a failure.
 */
int dl_checkpoint_read(const char *path, struct dl_layout *l, float ***values,
	struct dl_err *e);

#endif
