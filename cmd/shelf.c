#include "cmd/shelf.h"

#include <stdlib.h>
#include <string.h>

enum {
	LEAST = 4096, /* bytes */
	LOOK = 4096,  /* after so many takes what nobody needs is freed */
};

void shelf_init(struct shelf *s, const struct dl_layout *layout)
{
	*s = (struct shelf){.layout = layout};
}

size_t shelf_bytes(const struct shelf *s, uint32_t p)
{
	return s->layout->fragment[p].elements * sizeof(float);
}

static void drop_spare(struct shelf_size *size)
{
	void *buffer = size->spare;

	memcpy(&size->spare, buffer, sizeof size->spare);
	size->spares--;
	dl_big_free(buffer, size->bytes);
}

/* As many are kept as were out at once. */
static void trim(struct shelf_size *size)
{
	size_t most = size->most > size->before ? size->most : size->before;

	while (size->spares && size->spares + size->out > most)
		drop_spare(size);
}

void shelf_release(struct shelf *s)
{
	for (size_t i = 0; i < s->sizes; i++)
		while (s->size[i].spares)
			drop_spare(&s->size[i]);
	free(s->size);
	*s = (struct shelf){0};
}

static size_t round_up(size_t bytes)
{
	size_t step = LEAST;

	while (step <= bytes / 16)
		step *= 2;
	return bytes ? (bytes + step - 1) / step * step : step;
}

static struct shelf_size *find_size(struct shelf *s, size_t bytes)
{
	size_t rounded = round_up(bytes), i = 0;

	while (i < s->sizes && s->size[i].bytes != rounded)
		i++;
	if (i == s->sizes) {
		s->size = dl_resize(s->size, ++s->sizes, sizeof *s->size);
		s->size[i] = (struct shelf_size){.bytes = rounded};
	}
	return &s->size[i];
}

static void look(struct shelf *s)
{
	if (++s->takes < LOOK)
		return;
	s->takes = 0;
	for (size_t i = 0; i < s->sizes; i++) {
		s->size[i].before = s->size[i].most;
		s->size[i].most = s->size[i].out;
		trim(&s->size[i]);
	}
}

void *shelf_take_bytes(struct shelf *s, size_t bytes)
{
	struct shelf_size *size = find_size(s, bytes);
	void *buffer = size->spare;

	if (buffer) {
		memcpy(&size->spare, buffer, sizeof size->spare);
		size->spares--;
	} else {
		buffer = dl_big_alloc(size->bytes);
	}
	if (++size->out > size->most)
		size->most = size->out;
	look(s);
	return buffer;
}

void shelf_give_bytes(struct shelf *s, void *buffer, size_t bytes)
{
	struct shelf_size *size;

	if (!buffer)
		return;
	size = find_size(s, bytes);
	memcpy(buffer, &size->spare, sizeof size->spare);
	size->spare = buffer;
	size->spares++;
	size->out--;
	trim(size);
}

float *shelf_take(struct shelf *s, uint32_t p)
{
	return shelf_take_bytes(s, shelf_bytes(s, p));
}

void shelf_give(struct shelf *s, uint32_t p, float *buffer)
{
	shelf_give_bytes(s, buffer, shelf_bytes(s, p));
}
