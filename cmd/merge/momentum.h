/*
 * The state of a merge: the outer optimizer's momentum, in a file of records
 * of kind momentum, one a fragment, as a store has them.
 */
#ifndef CMD_MERGE_MOMENTUM_H
#define CMD_MERGE_MOMENTUM_H

#include "base/output.h"
#include "cmd/merge/base.h"
#include "tensor/records.h"

struct momentum {
	struct dl_records file; /* as it was; none when there was no file */
	size_t *record; /* of each fragment of the layout; SIZE_MAX: none */
	char *replaced; /* of each record */
};
/* Momentum that nobody keeps: zero. */
#define MOMENTUM_INIT                                                          \
	{                                                                      \
		DL_RECORDS_INIT, NULL, NULL                                    \
	}

/* Close it also after a failure. 65 when it is not of the base's fragments and
 * versions. */
int momentum_open(
	struct momentum *m, const char *path, struct base *b, struct dl_err *e);
void momentum_close(struct momentum *m);

/* Fragment p's, packed; zero when there is none yet. */
int momentum_read(const struct momentum *m, const struct base *b, uint32_t p,
	float *out, struct dl_err *e);
/* Writes fragment p's new one to o. */
int momentum_write(struct momentum *m, const struct base *b, uint32_t p,
	const float *data, struct dl_output *o, struct dl_err *e);
/* At the end: the records that were not replaced stay as they are. */
int momentum_keep(
	const struct momentum *m, struct dl_output *o, struct dl_err *e);

#endif
