#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/cpu.h"

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static int is_cpu(void)
{
	const char *name = getenv("BENCH_CLOCK");

	return name && !strcmp(name, "cpu");
}

double bench_others(double cpu)
{
	return is_cpu() ? cpu : 0;
}

double bench_now(void)
{
	struct rusage of;

	if (!is_cpu())
		return now(CLOCK_MONOTONIC);
	getrusage(RUSAGE_CHILDREN, &of);
	return now(CLOCK_PROCESS_CPUTIME_ID) + seconds(&of.ru_utime) +
	       seconds(&of.ru_stime);
}

static double told; /* of the turn; below 0: nothing */

void bench_took(double seconds)
{
	told = seconds;
}

static double time_of(bench_fn *turn, void *ctx)
{
	double from = bench_now();

	told = -1;
	turn(ctx);
	return told < 0 ? bench_now() - from : told;
}

void bench_need(int fine, const char *what)
{
	if (fine)
		return;
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static int rising(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The value that this share of them is below. */
static double quantile(double *x, int n, double share)
{
	qsort(x, (size_t)n, sizeof *x, rising);
	return x[(int)(share * (n - 1) + 0.5)];
}

void bench_compare(const struct bench *b, bench_fn *product, bench_fn *limit,
	void *ctx, const char *path, ...)
{
	double made[BENCH_MOST], most[BENCH_MOST], ratio[BENCH_MOST];
	int n = b->turns ? b->turns : BENCH_TURNS;
	va_list ap;

	limit(ctx);
	product(ctx);
	for (int i = 0; i < n; i++) {
		most[i] = b->amount / time_of(limit, ctx);
		made[i] = b->amount / time_of(product, ctx);
		ratio[i] = made[i] / most[i];
	}
	va_start(ap, path);
	vprintf(path, ap);
	va_end(ap);
	printf("\t%.4g\t%.4g\t%s\t%.3f\t%.3f\t%s\n", quantile(made, n, 0.5),
		quantile(most, n, 0.5), b->unit, quantile(ratio, n, 0.5),
		quantile(ratio, n, 0.75) - quantile(ratio, n, 0.25),
		dl_cpu_name(dl_cpu_level()));
	fflush(stdout);
}
