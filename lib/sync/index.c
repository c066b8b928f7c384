/* Learners by name: every event names one, so that it costs the same whether a
 * run has four or a thousand. */
#include "sync/core.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { SLOTS_LEAST = 16 };

/* FNV-1a. */
static uint64_t hash(const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

/* The slot of that name, or the empty one where it belongs. */
static struct learner **slot_of(const struct dl_sync *s, const char *name)
{
	size_t i = hash(name) & (s->slots - 1);

	while (s->slot[i] && strcmp(s->slot[i]->name, name))
		i = (i + 1) & (s->slots - 1);
	return &s->slot[i];
}

struct learner *find_learner(const struct dl_sync *s, const char *name)
{
	return s->slots ? *slot_of(s, name) : NULL;
}

static void grow(struct dl_sync *s)
{
	struct learner **old = s->slot;
	size_t n = s->slots;

	s->slots = n ? 2 * n : SLOTS_LEAST;
	s->slot = dl_alloc_array(s->slots, sizeof(struct learner *));
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*slot_of(s, old[i]->name) = old[i];
	free(old);
}

void index_learner(struct dl_sync *s, struct learner *l)
{
	if (s->slots < 2 * s->learners)
		grow(s);
	*slot_of(s, l->name) = l;
}
