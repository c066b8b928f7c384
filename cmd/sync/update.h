/*
 * Updates: the step of a fragment's values from one version to the next, in a
 * narrow codec, made once for all learners (DESIGN, "The way down").
 */
#ifndef CMD_SYNC_UPDATE_H
#define CMD_SYNC_UPDATE_H

#include "base/pool.h"
#include "cmd/sync/shared.h"
#include "sync/clock.h"
#include "tensor/coded.h"

struct update {
	struct dl_version base, version;
	struct shared *data; /* of the record; NULL: there is none */
};

struct update_work {
	struct dl_pool *pool;
	struct shelf *shelf;
	const struct dl_layout *layout;
	const struct dl_quant *quant;
	float *scratch; /* of the fragment's size */
};

/*
 * Encodes the step of fragment p from values to next, with what is owed from
 * before: x = (next - values) + error. values moves by what x decodes to, as
 * every learner's does that is sent it; error is what is left of x; next is
 * used up. All in plain f32, element by element. NULL when the codec cannot
 * hold x: then values moves by x, and nothing is owed.
 */
struct shared *update_make(const struct update_work *w, uint32_t p,
	float *values, float *next, float *error);

/* What is owed becomes part of values: they go whole. */
void update_settle(float *values, const float *error, size_t n);

#endif
