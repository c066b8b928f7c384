#include "state/trail.h"

#include <string.h>

#include "base/mem.h"

void dl_trail_init(struct dl_trail *t)
{
	dl_hash_init(&t->hash);
}

static void add(struct dl_trail *t, uint64_t v)
{
	unsigned char bytes[8];

	dl_put_le64(bytes, v);
	dl_hash_add(&t->hash, bytes, sizeof bytes);
}

static void add_real(struct dl_trail *t, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof bits);
	add(t, bits);
}

static void add_name(struct dl_trail *t, const char *name)
{
	size_t n = name ? strlen(name) : 0;

	add(t, n);
	dl_hash_add(&t->hash, name, n);
}

void dl_trail_add(struct dl_trail *t, const struct dl_sync_action *a)
{
	add(t, a->kind);
	add_name(t, a->learner);
	add(t, a->instance);
	add(t, a->fragment);
	add(t, a->step);
	add(t, a->seq);
	add(t, a->push);
	add(t, a->version.epoch);
	add(t, a->version.number);
	add(t, a->taken);
	add(t, a->refusal);
	add_real(t, a->scale);
	add(t, a->final != 0);
	add(t, a->parts);
	for (size_t i = 0; i < a->parts; i++) {
		add_name(t, a->part[i].learner);
		add(t, a->part[i].push);
		add_real(t, a->part[i].weight);
		add_real(t, a->part[i].scale);
	}
}

void dl_trail_hex(const struct dl_trail *t, char out[DL_TRAIL_HEX])
{
	struct dl_hash so_far = t->hash;
	char all[DL_HASH_HEX];

	dl_hash_hex(&so_far, all);
	memcpy(out, all, DL_TRAIL_HEX - 1);
	out[DL_TRAIL_HEX - 1] = '\0';
}
