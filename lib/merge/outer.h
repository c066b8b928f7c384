/*
 * The outer optimizer: a merged update becomes a step of the global values.
 */
#ifndef DL_MERGE_OUTER_H
#define DL_MERGE_OUTER_H

#include "merge/merge.h"

struct dl_outer {
	float lr;     /* outer learning rate */
	float mu;     /* momentum; 0 is plain SGD and keeps no state */
	int nesterov; /* look ahead along the new momentum */
};

/*
 * One outer step of a fragment whose merged update is not empty. In plain f32,
 * element by element, in this order, with g = -update:
 *
 *	mu = 0:    theta = theta - lr * g
 *	else:      b = mu * b + g
 *	           theta = theta - lr * b
 *	nesterov:  theta = theta - lr * (g + mu * b)
 *
 * Segments of the rules stat and last take theta = theta + update and no
 * momentum; alias segments are left alone. theta, momentum and update are
 * packed as the fragment; momentum is not used, and may be NULL, when mu is 0.
 */
void dl_outer_step(struct dl_pool *pool, const struct dl_outer *outer,
	const struct dl_segment *segments, size_t nsegments,
	const float *update, float *theta, float *momentum);

#endif
