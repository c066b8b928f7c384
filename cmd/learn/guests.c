#include "cmd/learn/guests.h"

#include <string.h>

#include "base/num.h"

static const int64_t stay = 600 * DL_SECOND;

static struct guest *find(const struct guests *g, const unsigned char *key)
{
	for (size_t i = 0; i < g->n; i++)
		if (!memcmp(g->guest[i].key, key, DL_KEY))
			return (struct guest *)&g->guest[i];
	return NULL;
}

static struct guest *take_place(struct guests *g)
{
	struct guest *first = &g->guest[0];

	if (g->n < GUESTS)
		return &g->guest[g->n++];
	for (size_t i = 1; i < g->n; i++)
		if (g->guest[i].until < first->until)
			first = &g->guest[i];
	return first;
}

void guests_add(struct guests *g, const char *name,
	const unsigned char key[DL_KEY], int64_t now)
{
	struct guest *guest = find(g, key);

	if (!guest)
		guest = take_place(g);
	memcpy(guest->key, key, DL_KEY);
	strcpy(guest->name, name);
	guest->until = now + stay;
}

const struct guest *guests_find(
	const struct guests *g, const unsigned char key[DL_KEY], int64_t now)
{
	const struct guest *guest = find(g, key);

	return guest && now < guest->until ? guest : NULL;
}
