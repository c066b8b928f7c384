/*
 * Buffers for fragments, kept for the next use: a new page costs more than the
 * work on it.
 */
#ifndef CMD_SHELF_H
#define CMD_SHELF_H

#include "tensor/layout.h"

struct shelf {
	const struct dl_layout *layout;
	size_t keep; /* buffers kept a fragment, at most */
	struct spare {
		void *buffer; /* NULL: none */
		size_t bytes;
	} * spare; /* P * keep */
};

void shelf_init(struct shelf *s, const struct dl_layout *layout, size_t keep);
/* Frees what is kept; buffers still out are the caller's to give first. */
void shelf_release(struct shelf *s);

/* Bytes of fragment p as a packed f32 array. */
size_t shelf_bytes(const struct shelf *s, uint32_t p);
float *shelf_take(struct shelf *s, uint32_t p); /* content undefined */
void shelf_give(struct shelf *s, uint32_t p, float *buffer); /* NULL is fine */

/* The same of another size, for a fragment that is encoded. */
void *shelf_take_bytes(struct shelf *s, uint32_t p, size_t bytes);
void shelf_give_bytes(struct shelf *s, uint32_t p, void *buffer, size_t bytes);

#endif
