/*
 * Updates: the step of a fragment's values from one version to the next, in a
 * narrow codec, made once for all learners (DESIGN, "The way down").
 */
#ifndef CMD_SYNC_UPDATE_H
#define CMD_SYNC_UPDATE_H

#include <stdatomic.h>

#include "cmd/sync/shared.h"
#include "sync/clock.h"
#include "tensor/coded.h"

struct update {
	struct dl_version base, version;
	struct shared *data; /* of the record; NULL: there is none */
};

/*
 * One being made, a block at a time: what is sent is the step that the values
 * were to make, with what is owed from before, x = (next - before) + error.
 * They move by what x decodes to, as every learner's do that is sent it, and
 * error is what is left of x. All in plain f32, element by element.
 */
struct update_work {
	const struct dl_quant *quant;
	const float *before;
	float *values, *error; /* values may be before */
	struct shared *data;
	struct dl_coded coded; /* of data */
	atomic_int lost;
};

void update_begin(struct update_work *w, struct shelf *shelf,
	const struct dl_layout *layout, uint32_t p);
/* A block of values after the step: struct dl_step's made. */
void update_block(void *work, size_t offset, size_t n, const float *next);
/* All blocks were made: the update; NULL when the codec could not hold one,
 * which has moved by x, so that values must go. */
struct shared *update_end(struct update_work *w);

/* What is owed becomes part of values: they go whole. */
void update_settle(float *values, const float *error, size_t n);

#endif
