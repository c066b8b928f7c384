/*
 * What a model of many tensors costs, beside sorting as many names: nanoseconds
 * a tensor, the best of some tries. Not a test; `make bench` runs it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../tensor/many.h"
#include "base/sort.h"
#include "tensor/join.h"
#include "tensor/split.h"

enum { TRIES = 3 };

struct bench {
	struct dl_model m;
	struct dl_layout l;
	struct dl_plan_options o;
	const char *whole, *cut; /* files */
	struct dl_err e;
};

static void check(const struct bench *b, int code)
{
	if (code) {
		fprintf(stderr, "plan_bench: %s\n", b->e.text);
		exit(code);
	}
}

static int compare(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_header *h = ctx;

	return dl_string_compare(&h->tensor[a].name, &h->tensor[b].name);
}

static void sort(struct bench *b)
{
	const struct dl_header *h = &b->m.file[0].record[0].header;

	free(dl_sorted(h->tensors, compare, h));
}

static void plan(struct bench *b)
{
	dl_layout_release(&b->l);
	check(b, dl_layout_plan(&b->l, &b->m, &b->o, &b->e));
}

static void split(struct bench *b)
{
	struct dl_output out;

	check(b, dl_output_open(&out, b->cut, &b->e));
	for (uint32_t i = 0; i < dl_split_records(&b->l, &b->m); i++)
		check(b, dl_split_write(&b->l, &b->m, i, &out, &b->e));
	check(b, dl_output_commit(&out, &b->e));
}

/* What show does, without printing. */
static int nothing(
	void *ctx, uint64_t record, const struct dl_header *h, struct dl_err *e)
{
	(void)ctx;
	(void)record;
	(void)h;
	(void)e;
	return 0;
}

static void headers(struct bench *b)
{
	check(b, dl_records_walk(b->cut, nothing, NULL, &b->e));
}

static void join(struct bench *b)
{
	struct dl_model parts = DL_MODEL_INIT;
	struct dl_join j = {&parts, NULL, &b->l};

	check(b, dl_model_add(&parts, b->cut, &b->e));
	check(b, dl_join_check(&j, &b->e));
	check(b, dl_join_write(&j, &(struct dl_save){.path = b->whole}, &b->e));
	dl_model_close(&parts);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(struct bench *b, void (*f)(struct bench *b))
{
	double best = 0;

	for (int i = 0; i < TRIES; i++) {
		double from = now(), took;

		f(b);
		took = now() - from;
		if (!i || took < best)
			best = took;
	}
	printf("\t%.0f", best / (double)b->m.tensors);
}

static void run(size_t n)
{
	static void (*const jobs[])(struct bench * b) = {
		sort, plan, split, headers, join};
	struct bench b = {.o.fragments = 24,
		.whole = "plan_bench.whole",
		.cut = "plan_bench.cut"};

	many_open(&b.m, 1, n);
	b.o.choices = many_tie(&b.o.choice, n);
	printf("%zu", n);
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		measure(&b, jobs[i]);
	putchar('\n');
	remove(b.whole);
	remove(b.cut);
	many_untie(b.o.choice, b.o.choices);
	dl_layout_release(&b.l);
	dl_model_close(&b.m);
}

int main(void)
{
	puts("# tensors\tsort\tplan\tsplit\theaders\tjoin\t(ns a tensor)");
	for (size_t n = 1000; n <= 100000; n *= 10)
		run(n);
	return 0;
}
