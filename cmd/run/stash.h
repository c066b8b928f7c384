/*
 * The pushes that the core holds, as files beside the store: STORE/push/ID,
 * each the whole record as it came. A push is copied here before the core hears
 * of it, and removed once the core has released it for good.
 */
#ifndef CMD_RUN_STASH_H
#define CMD_RUN_STASH_H

#include "base/hash.h"
#include "link/message.h"
#include "tensor/records.h"

struct stash {
	char *folder;
	uint64_t *id; /* those there at first, in order; 0: to be left */
	size_t ids;
	uint64_t before, last; /* the highest there at first, and ever given */
};

/* Makes the folder if need be, and removes what was never finished. */
int stash_open(struct stash *s, const char *store, struct dl_err *e);
void stash_release(struct stash *s);

/*
 * Copies fd, a file from outside, durably under a new id: DL_NO when its bytes
 * have not that hash, or it cannot be read now; 73 or 74 when the copy cannot
 * be written.
 */
int stash_copy(struct stash *s, int fd, const char *hash, uint64_t *id,
	struct dl_err *e);
/* Copies it durably to folder, where its hash is its name; one that is there is
 * the same. 73 or 74. */
int stash_record(const struct stash *s, uint64_t id, const char *folder,
	const char *hash, struct dl_err *e);
void stash_remove(struct stash *s, uint64_t id);

/* A push as it lies there. */
struct stashed {
	struct dl_records file;
	struct dl_message push;
	char learner[DL_NAME_MAX + 1];
	uint64_t instance;
};

/* Opens and understands it: 65 when it is not one push of that run, 66 when it
 * is gone. Whether it fits the layout is the caller's to see. Close it also
 * after a failure. */
int stash_look(const struct stash *s, uint64_t id, const char *run,
	struct stashed *out, struct dl_err *e);
void stashed_close(struct stashed *p);

#endif
