#include "cmd/shelf.h"

#include <stdlib.h>

void shelf_init(struct shelf *s, const struct dl_layout *layout, size_t keep)
{
	*s = (struct shelf){.layout = layout, .keep = keep};
	s->spare = dl_alloc_array(layout->fragments * keep, sizeof *s->spare);
}

size_t shelf_bytes(const struct shelf *s, uint32_t p)
{
	return s->layout->fragment[p].elements * sizeof(float);
}

void shelf_release(struct shelf *s)
{
	size_t n = s->spare ? s->layout->fragments * s->keep : 0;

	for (size_t i = 0; i < n; i++)
		if (s->spare[i].buffer)
			dl_big_free(s->spare[i].buffer, s->spare[i].bytes);
	free(s->spare);
	*s = (struct shelf){0};
}

void *shelf_take_bytes(struct shelf *s, uint32_t p, size_t bytes)
{
	for (size_t i = p * s->keep; i < (p + 1) * s->keep; i++) {
		struct spare *spare = &s->spare[i];
		void *buffer = spare->buffer;

		if (!buffer || spare->bytes != bytes)
			continue;
		spare->buffer = NULL;
		return buffer;
	}
	return dl_big_alloc(bytes);
}

void shelf_give_bytes(struct shelf *s, uint32_t p, void *buffer, size_t bytes)
{
	for (size_t i = p * s->keep; buffer && i < (p + 1) * s->keep; i++)
		if (!s->spare[i].buffer) {
			s->spare[i] = (struct spare){buffer, bytes};
			return;
		}
	if (buffer)
		dl_big_free(buffer, bytes);
}

float *shelf_take(struct shelf *s, uint32_t p)
{
	return shelf_take_bytes(s, p, shelf_bytes(s, p));
}

void shelf_give(struct shelf *s, uint32_t p, float *buffer)
{
	shelf_give_bytes(s, p, buffer, shelf_bytes(s, p));
}
