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
	for (uint32_t p = 0; s->spare && p < s->layout->fragments; p++)
		for (size_t i = 0; i < s->keep; i++)
			if (s->spare[p * s->keep + i])
				dl_big_free(s->spare[p * s->keep + i],
					shelf_bytes(s, p));
	free(s->spare);
	*s = (struct shelf){0};
}

float *shelf_take(struct shelf *s, uint32_t p)
{
	for (size_t i = p * s->keep; i < (p + 1) * s->keep; i++) {
		float *buffer = s->spare[i];

		s->spare[i] = NULL;
		if (buffer)
			return buffer;
	}
	return dl_big_alloc(shelf_bytes(s, p));
}

void shelf_give(struct shelf *s, uint32_t p, float *buffer)
{
	for (size_t i = p * s->keep; buffer && i < (p + 1) * s->keep; i++)
		if (!s->spare[i]) {
			s->spare[i] = buffer;
			return;
		}
	if (buffer)
		dl_big_free(buffer, shelf_bytes(s, p));
}
