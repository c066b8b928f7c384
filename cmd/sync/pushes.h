/*
 * The pushes that wait to be merged, as they came: each the data of a record,
 * in its learner's codec.
 */
#ifndef CMD_SYNC_PUSHES_H
#define CMD_SYNC_PUSHES_H

#include "base/pool.h"
#include "cmd/shelf.h"
#include "cmd/sync/arrival.h"
#include "sync/sync.h"
#include "tensor/coded.h"

struct push {
	struct push *next; /* of that fragment */
	uint64_t id;	   /* the core's handle */
	uint32_t fragment;
	double norm;	/* of what it decodes to */
	uint64_t bytes; /* of its record, header and data */
	void *data;	/* of the record */
	size_t size;
	int packed; /* data are the packed f32 array */
	struct dl_coded coded;
	struct arrival arrival;
};

struct pushes {
	struct dl_pool *pool;
	struct shelf *shelf;
	const struct dl_layout *layout;
	struct dl_segment *const *segment; /* P lists, as segments_cut's */
	const size_t *segments;		   /* P */
	struct push **first;		   /* P lists */
	uint64_t ids;			   /* given out */
};

void pushes_init(struct pushes *s, struct dl_pool *pool, struct shelf *shelf,
	const struct dl_layout *layout, struct dl_segment *const *segment,
	const size_t *segments);
void pushes_release(struct pushes *s);
void pushes_clear(struct pushes *s); /* drops them all */

/*
 * A push of that fragment begins to come, with that header: what follows goes
 * to data. 65 when the record does not hold the fragment in a codec that is
 * known here. It is dropped or arrives; arrival_take may be told of what there
 * is till then.
 */
int pushes_begin(struct pushes *s, uint32_t fragment, const struct dl_header *h,
	struct push **out, struct dl_err *e);
/* Its bytes are all there: its norm is known, and its id. */
void pushes_arrived(struct pushes *s, struct push *push);
int pushes_hold(const struct pushes *s, uint64_t id); /* is it here? */
void pushes_drop(struct pushes *s, struct push *push);
void pushes_drop_id(struct pushes *s, uint64_t id); /* if it is here */

/* What is to be merged of it, as far as it is there; without name and weight.
 */
struct dl_contribution pushes_contribution(const struct push *push);

/* The parts of a DL_ACT_MERGE, the pushes of each learner as one. */
struct contributions {
	struct dl_contribution *item;
	size_t n;
	double *products;	  /* for dl_merge_step; NULL: not known */
	uint32_t fragment;	  /* private from here */
	float **sum;		  /* n: of several pushes; NULL for one */
	const struct push **push; /* n: the one; NULL for several */
};
void pushes_gather(struct pushes *s, const struct dl_sync_action *a,
	struct contributions *c);
void pushes_gathered(struct pushes *s, struct contributions *c);

#endif
