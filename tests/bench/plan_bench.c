/*
 * What a model of many tensors costs, beside sorting as many names: millions of
 * tensors a second.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../tensor/many.h"
#include "base/sort.h"
#include "bench.h"
#include "tensor/join.h"
#include "tensor/split.h"

struct many {
	struct dl_model m;
	struct dl_layout l;
	struct dl_plan_options o;
	const char *whole, *cut; /* files */
	struct dl_err e;
};

static void check(const struct many *b, int code)
{
	bench_need(!code, b->e.text);
}

static int compare(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_header *h = ctx;

	return dl_string_compare(&h->tensor[a].name, &h->tensor[b].name);
}

static void sort(void *ctx)
{
	struct many *b = ctx;
	const struct dl_header *h = &b->m.file[0].record[0].header;

	free(dl_sorted(h->tensors, compare, h));
}

static void plan(void *ctx)
{
	struct many *b = ctx;

	dl_layout_release(&b->l);
	check(b, dl_layout_plan(&b->l, &b->m, &b->o, &b->e));
}

static void split(void *ctx)
{
	struct many *b = ctx;
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

static void headers(void *ctx)
{
	struct many *b = ctx;

	check(b, dl_records_walk(b->cut, nothing, NULL, &b->e));
}

static void join(void *ctx)
{
	struct many *b = ctx;
	struct dl_model parts = DL_MODEL_INIT;
	struct dl_join j = {&parts, NULL, &b->l};

	check(b, dl_model_add(&parts, b->cut, &b->e));
	check(b, dl_join_check(&j, &b->e));
	check(b, dl_join_write(&j, &(struct dl_save){.path = b->whole}, &b->e));
	dl_model_close(&parts);
}

static void measure(size_t n)
{
	static const struct {
		const char *name;
		bench_fn *run;
	} jobs[] = {{"plan", plan}, {"split", split}, {"headers", headers},
		{"join", join}};
	const struct bench bench = {
		.unit = "M/s", .amount = (double)n * 1e-6, .turns = 5};
	struct many b = {.o.fragments = 24,
		.whole = "plan_bench.whole",
		.cut = "plan_bench.cut"};

	many_open(&b.m, 1, n);
	b.o.choices = many_tie(&b.o.choice, n);
	for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
		bench_compare(&bench, jobs[i].run, sort, &b,
			"%s %zu tensors, beside a sort", jobs[i].name, n);
	remove(b.whole);
	remove(b.cut);
	many_untie(b.o.choice, b.o.choices);
	dl_layout_release(&b.l);
	dl_model_close(&b.m);
}

int main(void)
{
	for (size_t n = 1000; n <= 100000; n *= 10)
		measure(n);
	return 0;
}
