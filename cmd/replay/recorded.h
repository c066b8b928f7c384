/*
 * The pushes that dl-sync serve --record has kept, by whose they are.
 */
#ifndef CMD_REPLAY_RECORDED_H
#define CMD_REPLAY_RECORDED_H

#include "base/err.h"
#include "sync/sync.h"
#include "tensor/records.h"

struct recorded_push {
	char *path;
	char learner[DL_NAME_MAX + 1];
	uint64_t instance, fragment, seq;
};

struct recorded {
	struct recorded_push *push; /* in order of all but their paths */
	size_t n;
};

/* Reads the headers of all files in folder; 65 for one that is no push. Close
 * it also after a failure. */
int recorded_open(struct recorded *r, const char *folder, struct dl_err *e);
void recorded_close(struct recorded *r);

/* The first push of that learner, instance, fragment and number, and the next
 * of the same; NULL when there is none. */
const struct recorded_push *recorded_find(
	const struct recorded *r, const struct dl_sync_event *ev);
const struct recorded_push *recorded_next(
	const struct recorded *r, const struct recorded_push *push);

/* Opens the file of a push; 65 when it is not the one that its name, a hash,
 * says. Close it also after a failure. */
int recorded_read(struct dl_records *file, const char *path, struct dl_err *e);

#endif
