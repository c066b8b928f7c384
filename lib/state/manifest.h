/*
 * manifest.json, the first entry of a checkpoint: what it is of, and each entry
 * that follows (dl-checkpoint(5)).
 */
#ifndef DL_STATE_MANIFEST_H
#define DL_STATE_MANIFEST_H

#include "base/hash.h"
#include "state/store.h"

enum {
	DL_ENTRY_NAME = 80,	    /* "momentum/P.E.N" and a NUL fit */
	DL_MANIFEST_LIMIT = 1 << 26 /* bytes of text */
};

struct dl_entry {
	char name[DL_ENTRY_NAME];
	uint64_t bytes;
	char hash[DL_HASH_HEX]; /* BLAKE2b of them */
};

struct dl_manifest {
	char run[DL_NAME_MAX + 1];
	uint64_t epoch, clock;
	int64_t made; /* wall-clock nanoseconds */
	struct dl_entry *entry;
	size_t entries;
};

/* A further entry, of which name is known. */
struct dl_entry *dl_manifest_add(struct dl_manifest *m, const char *name);

/* The whole text, appended to out. */
void dl_manifest_write(struct dl_buf *out, const struct dl_manifest *m);
/* Its inverse: 0, or 65 with the fact. dl_manifest_release in both cases. */
int dl_manifest_parse(
	struct dl_manifest *m, const void *text, size_t n, struct dl_err *e);
void dl_manifest_release(struct dl_manifest *m);

#endif
