#include "cmd/fetch/donors.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { MOST = 1024 }; /* that are remembered */

static const size_t gone = SIZE_MAX;

void donors_release(struct donors *d)
{
	free(d->donor);
	*d = (struct donors){0};
}

static struct donor *find(struct donors *d, const struct dl_offer *offer)
{
	for (size_t i = 0; i < d->donors; i++)
		if (!memcmp(d->donor[i].offer.address.key, offer->address.key,
			    DL_KEY))
			return &d->donor[i];
	return NULL;
}

static struct donor *add(struct donors *d)
{
	if (d->donors == MOST)
		return NULL;
	if (d->donors == d->cap) {
		d->cap = d->cap ? 2 * d->cap : 8;
		d->donor = dl_resize(d->donor, d->cap, sizeof *d->donor);
	}
	d->donor[d->donors] = (struct donor){0};
	return &d->donor[d->donors++];
}

void donors_hear(struct donors *d, const char *text)
{
	struct dl_offer offer;
	size_t rank = 0;

	for (size_t i = 0; i < d->donors; i++)
		d->donor[i].rank = gone;
	while (dl_offer_next(&offer, &text)) {
		struct donor *donor = find(d, &offer);

		if (!donor)
			donor = add(d);
		if (!donor)
			return;
		donor->offer = offer;
		donor->rank = rank++;
	}
}

static int is_open(const struct donor *donor)
{
	return donor->rank != gone && !donor->barred;
}

size_t donors_open(const struct donors *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->donors; i++)
		n += (size_t)is_open(&d->donor[i]);
	return n;
}

struct donor *donors_next(struct donors *d)
{
	struct donor *best = NULL;

	for (size_t i = 0; i < d->donors; i++) {
		struct donor *it = &d->donor[i];

		if (!is_open(it))
			continue;
		if (!best || it->tries < best->tries ||
			(it->tries == best->tries && it->rank < best->rank))
			best = it;
	}
	return best;
}
