/*
 * Models of very many tensors: the same plan every time, and work that grows
 * as n log n. Work is counted in comparisons, since time says nothing on a
 * machine that others use.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "many.h"
#include "tensor/join.h"
#include "tensor/split.h"

static uint64_t comparisons;

typedef int compare_fn(const void *a, const void *b);
static compare_fn *compare;

static int counted(const void *a, const void *b)
{
	comparisons++;
	return compare(a, b);
}

void __real_qsort(void *base, size_t n, size_t size, compare_fn *f);
void __wrap_qsort(void *base, size_t n, size_t size, compare_fn *f);
void __wrap_qsort(void *base, size_t n, size_t size, compare_fn *f)
{
	compare = f;
	__real_qsort(base, n, size, counted);
}

void *__real_bsearch(const void *key, const void *base, size_t n, size_t size,
	compare_fn *f);
void *__wrap_bsearch(const void *key, const void *base, size_t n, size_t size,
	compare_fn *f);
void *__wrap_bsearch(
	const void *key, const void *base, size_t n, size_t size, compare_fn *f)
{
	compare = f;
	return __real_bsearch(key, base, n, size, counted);
}

int __real_fnmatch(const char *pattern, const char *s, int flags);
int __wrap_fnmatch(const char *pattern, const char *s, int flags);
int __wrap_fnmatch(const char *pattern, const char *s, int flags)
{
	comparisons++;
	return __real_fnmatch(pattern, s, flags);
}

int __real_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n)
{
	comparisons++;
	return __real_memcmp(a, b, n);
}

static struct dl_err e;

/* Plans n tensors by every strategy, with the text of all plans in out. */
static void plan_all(struct dl_buf *out, uint64_t seed, size_t n)
{
	struct dl_plan_options o = {.fragments = (uint32_t)n / 100};
	struct dl_model m;
	struct dl_layout l;

	many_open(&m, seed, n);
	o.choices = many_tie(&o.choice, n);
	for (o.strategy = DL_BALANCED; o.strategy <= DL_STRIDED; o.strategy++) {
		if (dl_layout_plan(&l, &m, &o, &e))
			exit(99);
		dl_layout_write(&l, out);
		dl_layout_release(&l);
	}
	many_untie(o.choice, o.choices);
	dl_model_close(&m);
}

/* Cuts a model into fragments and joins them: does it come back? */
static int there_and_back(size_t n)
{
	struct dl_plan_options o = {.fragments = (uint32_t)n / 100};
	struct dl_model m, parts = DL_MODEL_INIT;
	struct dl_join j = {&parts, NULL, NULL};
	struct dl_layout l;
	struct dl_output out;
	char joined[] = "/tmp/dl-scale-XXXXXX";
	FILE *file = tmpfile();
	int bad, fd = mkstemp(joined);

	many_open(&m, 1, n);
	bad = fd < 0 || !file || dl_layout_plan(&l, &m, &o, &e) ||
	      dl_layout_match(&l, &m, &e);
	out = (struct dl_output){.fd = file ? fileno(file) : -1};
	for (uint32_t i = 0; !bad && i < dl_split_records(&l, &m); i++)
		bad = dl_split_write(&l, &m, i, &out, &e);
	rewind(file);
	bad = bad || dl_model_add_fd(&parts, "parts", dup(fileno(file)), &e) ||
	      dl_join_check(&j, &e) || parts.tensors != n ||
	      dl_join_write(&j, &(struct dl_save){.path = joined}, &e);
	unlink(joined);
	close(fd);
	dl_model_close(&parts);
	dl_model_close(&m);
	dl_layout_release(&l);
	fclose(file);
	return !bad;
}

/* Ten times the tensors: ten times the work, and a third for the logarithm. */
static void check_growth(const char *what, uint64_t before, uint64_t after)
{
	ok(before && after < 16 * before,
		"%s: %llu comparisons, %llu for ten times as many", what,
		(unsigned long long)before, (unsigned long long)after);
}

int main(void)
{
	static const size_t sizes[] = {1000, 10000, 100000};
	uint64_t plans[3], cuts[3];

	for (size_t i = 0; i < 3; i++) {
		struct dl_buf a = DL_BUF_INIT, b = DL_BUF_INIT;

		comparisons = 0;
		plan_all(&a, 1, sizes[i]);
		plans[i] = comparisons;
		plan_all(&b, 2, sizes[i]);
		ok(a.len == b.len && !memcmp(a.data, b.data, a.len),
			"%zu tensors in another order: the same plans",
			sizes[i]);
		dl_buf_free(&a);
		dl_buf_free(&b);
		comparisons = 0;
		ok(there_and_back(sizes[i]), "split and joined");
		cuts[i] = comparisons;
	}
	for (size_t i = 0; i < 2; i++) {
		check_growth("planning", plans[i], plans[i + 1]);
		check_growth("splitting and joining", cuts[i], cuts[i + 1]);
	}
	return done_testing();
}
