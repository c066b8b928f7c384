/*
 * Buffers for fragments, kept for the next use by any of them: a new page costs
 * more than the work on it.
 */
#ifndef CMD_SHELF_H
#define CMD_SHELF_H

#include "tensor/layout.h"

struct shelf {
	const struct dl_layout *layout;
	/* Sizes are rounded up, by an eighth at most, so that few of them are
	 * told apart. */
	struct shelf_size {
		size_t bytes;
		void *spare; /* each begins with the next one's address */
		size_t spares, out;
		/* out at once, at most: since the last look, and before it */
		size_t most, before;
	} * size;
	size_t sizes;
	unsigned takes; /* since the last look */
};

void shelf_init(struct shelf *s, const struct dl_layout *layout);
/* Frees what is kept; buffers still out are the caller's to give first. */
void shelf_release(struct shelf *s);

/* Bytes of fragment p as a packed f32 array. */
size_t shelf_bytes(const struct shelf *s, uint32_t p);
float *shelf_take(struct shelf *s, uint32_t p); /* content undefined */
void shelf_give(struct shelf *s, uint32_t p, float *buffer); /* NULL is fine */

/* The same of another size, for a fragment that is encoded. */
void *shelf_take_bytes(struct shelf *s, size_t bytes);
void shelf_give_bytes(struct shelf *s, void *buffer, size_t bytes);

#endif
