/*
 * How fast a model is cut and joined, beside cat writing the same bytes: in
 * memory (/dev/shm), and on the disk of the current folder, where what dl-frag
 * and dl-join write is safe at their end, as what cat writes is after sync. The
 * model has BENCH_GIB (1) GiB; it needs three times as much room.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "bench.h"

enum { TENSORS = 64 }; /* a GiB of them */
static const size_t size = (size_t)1 << 24;
static char folder[4096]; /* what is made; removed in the end */

/* Commands that make `out`. */
struct path {
	const char *product, *limit;
};

static void run(const char *command)
{
	bench_need(!system(command), command);
}

/* To remove what the turn before made is no part of this one. */
static void make(const char *command)
{
	double from;

	run("rm -rf out");
	from = bench_now();
	run(command);
	bench_took(bench_now() - from);
}

static void product(void *ctx)
{
	const struct path *p = ctx;

	make(p->product);
}

static void limit(void *ctx)
{
	const struct path *p = ctx;

	make(p->limit);
}

/* As many tensors, of as many bytes, as a program that writes records makes. */
static void write_model(size_t tensors)
{
	char *zeros = dl_alloc(size);
	FILE *f = fopen("model", "w");
	struct dl_buf head = DL_BUF_INIT;
	unsigned char length[8];

	for (size_t i = 0; i < tensors; i++)
		dl_buf_printf(&head,
			"%s\"t%zu\":{\"dtype\":\"F32\",\"shape\":[%zu],"
			"\"data_offsets\":[%zu,%zu]}",
			i ? "," : "{", i, size / 4, i * size, (i + 1) * size);
	dl_buf_byte(&head, '}');
	dl_put_le64(length, head.len);
	bench_need(f && fwrite(length, sizeof length, 1, f) &&
			   fwrite(head.data, head.len, 1, f),
		"model");
	for (size_t i = 0; i < tensors; i++)
		bench_need(fwrite(zeros, size, 1, f) == 1, "model");
	bench_need(!fclose(f), "model");
	dl_buf_free(&head);
	free(zeros);
}

static void clean(void)
{
	char *command = dl_sprintf("rm -rf '%s'", folder);

	if (*folder && system(command))
		fprintf(stderr, "bench: %s is left\n", folder);
	free(command);
	*folder = 0;
}

static void enter(const char *where)
{
	snprintf(folder, sizeof folder, "%s/files-bench-XXXXXX", where);
	if (!mkdtemp(folder) || chdir(folder)) {
		*folder = 0;
		bench_need(0, where);
	}
}

static void measure(const char *where, const char *name, unsigned gib,
	struct path split, struct path join)
{
	const struct bench b = {.unit = "GB/s",
		.amount = (double)gib * TENSORS * (double)size * 1e-9,
		.turns = 5};

	enter(where);
	write_model((size_t)gib * TENSORS);
	run("$BENCH_TOOLS/dl-frag plan -q -n 24 model >layout");
	bench_compare(&b, product, limit, &split,
		"split %u GiB, %s, beside cat", gib, name);
	run("$BENCH_TOOLS/dl-frag split -q -l layout model >cut && rm model");
	bench_compare(&b, product, limit, &join, "join %u GiB, %s, beside cat",
		gib, name);
	bench_need(!chdir(getenv("BENCH_TOOLS")), "the current folder");
	clean();
}

int main(void)
{
	static const struct path split = {
		"$BENCH_TOOLS/dl-frag split -q -l layout model >out",
		"cat model >out"};
	static const struct path join = {
		"$BENCH_TOOLS/dl-join -q -o out cut", "cat cut >out"};
	static const struct path safe_split = {
		"$BENCH_TOOLS/dl-frag split -q -l layout -o out model",
		"cat model >out && sync out"};
	static const struct path safe_join = {
		"$BENCH_TOOLS/dl-join -q -o out cut",
		"cat cut >out && sync out"};
	const char *gib = getenv("BENCH_GIB");
	char here[4000];
	uint64_t n = 1;

	bench_need(getcwd(here, sizeof here) && !setenv("BENCH_TOOLS", here, 1),
		"the current folder");
	bench_need(!gib || !dl_parse_u64(gib, 1, 999, &n),
		"BENCH_GIB: not a number of GiB");
	atexit(clean);
	measure("/dev/shm", "memory", (unsigned)n, split, join);
	measure(here, "disk", (unsigned)n, safe_split, safe_join);
	return 0;
}
