/*
 * The same pushes give the same bits, in any order, on any number of threads
 * and at every CPU level. Run with an argument it prints the hashes of all
 * rounds, which is how it asks itself at other levels.
 */
#include "base/cpu.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "fixture.h"
#include "merge/outer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tap.h"

enum { LEARNERS = 8, ORDERS = 100 };

static void shuffle(struct dl_contribution *from, size_t m, struct dl_rng *r)
{
	for (size_t i = m; i > 1; i--) {
		size_t j = dl_rng_below(r, i);
		struct dl_contribution swap = from[i - 1];

		from[i - 1] = from[j];
		from[j] = swap;
	}
}

/* The hash of everything that a round makes: update, shares in the order of
 * f->name, and values and momentum after two steps. */
static void hash_round(
	const struct fixture *f, struct dl_pool *pool, char hex[DL_HASH_HEX])
{
	const struct dl_outer outer = {0.7f, 0.9f, 1};
	float *update = dl_alloc_array(3 * f->n, sizeof *update);
	float *theta = update + f->n, *momentum = theta + f->n;
	struct dl_share share[FIXTURE_MOST];
	struct dl_hash h;

	dl_merge_fragment(pool, f->segments, f->nsegments, f->from, f->m,
		update, share, NULL);
	for (int i = 0; i < 2; i++)
		dl_outer_step(pool, &outer, f->segments, f->nsegments, update,
			theta, momentum);
	dl_hash_init(&h);
	dl_hash_add(&h, update, 3 * f->n * sizeof *update);
	for (size_t j = 0; j < f->m; j++)
		for (size_t k = 0; k < f->m; k++)
			if (f->from[k].name == f->name[j])
				dl_hash_add(&h, &share[k], sizeof share[k]);
	dl_hash_hex(&h, hex);
	free(update);
}

static void print_hashes(FILE *out)
{
	char hex[DL_HASH_HEX];
	struct fixture f;

	for (int kind = 0; kind < 2 * FIXTURES; kind++) {
		fixture_init(&f, (enum fixture_kind)(kind / 2), LEARNERS, 3);
		if (kind % 2)
			fixture_encode_all(&f);
		hash_round(&f, NULL, hex);
		fprintf(out, "%s ", hex);
		fixture_release(&f);
	}
}

static void test_orders(unsigned threads)
{
	struct dl_pool *pool = dl_pool_new(threads);
	char first[DL_HASH_HEX], hex[DL_HASH_HEX];
	struct dl_rng r = {threads, 0};
	struct fixture f;
	int same = 0;

	fixture_init(&f, NORMAL, LEARNERS, 2);
	hash_round(&f, NULL, first);
	for (int i = 0; i < ORDERS; i++) {
		shuffle(f.from, f.m, &r);
		hash_round(&f, pool, hex);
		same += !strcmp(hex, first);
	}
	ok(same == ORDERS, "%d of %d orders on %u threads: same hash", same,
		ORDERS, threads);

	/* The check can fail: the last bit of one delta matters. */
	f.delta[0][f.n / 2] *= 1 + 0x1p-23f;
	hash_round(&f, pool, hex);
	ok(strcmp(hex, first) != 0, "another bit, another hash");
	dl_pool_free(pool);
	fixture_release(&f);
}

static void test_level(const char *self, enum dl_cpu level)
{
	char *command =
		dl_sprintf("DL_CPU=%s '%s' hashes", dl_cpu_name(level), self);
	char *mine = NULL;
	size_t size;
	FILE *out = open_memstream(&mine, &size), *in = popen(command, "r");
	char theirs[2 * FIXTURES * DL_HASH_HEX + 1] = "";

	print_hashes(out);
	fclose(out);
	theirs[fread(theirs, 1, sizeof theirs - 1, in)] = '\0';
	ok(!pclose(in) && !strcmp(mine, theirs), "%s gives the bits of %s",
		dl_cpu_name(level), dl_cpu_name(dl_cpu_level()));
	free(mine);
	free(command);
}

int main(int argc, char **argv)
{
	static const unsigned threads[] = {1, 2, 7};

	if (argc > 1) {
		print_hashes(stdout);
		return 0;
	}
	for (int i = 0; i < 3; i++)
		test_orders(threads[i]);
	for (int level = 0; level < DL_CPU_LEVELS; level++)
		test_level(argv[0], (enum dl_cpu)level);
	return done_testing();
}
