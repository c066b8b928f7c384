/*
 * How fast models are cut and joined in memory (/dev/shm), beside cat writing
 * the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench.h"

enum { TENSORS = 64 };
static const size_t size = (size_t)1 << 24; /* of a tensor: 1 GiB in all */

static void run(const char *command)
{
	bench_need(!system(command), command);
}

static void split(void *ctx)
{
	(void)ctx;
	run("$BENCH_TOOLS/dl-frag split -q -l layout model >cut");
}

static void join(void *ctx)
{
	(void)ctx;
	run("$BENCH_TOOLS/dl-join -q -o joined cut");
}

static void cat(void *ctx)
{
	(void)ctx;
	run("cat model >copy");
}

/* As many tensors, of as many bytes, as a program that writes records makes. */
static void write_model(void)
{
	char *zeros = dl_alloc(size);
	FILE *f = fopen("model", "w");
	struct dl_buf head = DL_BUF_INIT;
	unsigned char length[8];

	for (size_t i = 0; i < TENSORS; i++)
		dl_buf_printf(&head,
			"%s\"t%zu\":{\"dtype\":\"F32\",\"shape\":[%zu],"
			"\"data_offsets\":[%zu,%zu]}",
			i ? "," : "{", i, size / 4, i * size, (i + 1) * size);
	dl_buf_byte(&head, '}');
	dl_put_le64(length, head.len);
	bench_need(f && fwrite(length, sizeof length, 1, f) &&
			   fwrite(head.data, head.len, 1, f),
		"model");
	for (size_t i = 0; i < TENSORS; i++)
		bench_need(fwrite(zeros, size, 1, f) == 1, "model");
	bench_need(!fclose(f), "model");
	dl_buf_free(&head);
	free(zeros);
}

int main(void)
{
	const struct bench b = {.unit = "GB/s",
		.amount = (double)TENSORS * (double)size * 1e-9,
		.turns = 5};
	char folder[] = "/dev/shm/files-bench-XXXXXX", here[4096];

	bench_need(getcwd(here, sizeof here) && !setenv("BENCH_TOOLS", here, 1),
		"the current folder");
	bench_need(mkdtemp(folder) && !chdir(folder), folder);
	write_model();
	run("$BENCH_TOOLS/dl-frag plan -q -n 24 model >layout");
	bench_compare(&b, split, cat, NULL, "split 1 GiB, beside cat");
	bench_compare(&b, join, cat, NULL, "join 1 GiB, beside cat");
	run("rm -rf \"$PWD\"");
	return 0;
}
