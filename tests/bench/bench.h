/*
 * What benches have in common. Each path of the product is timed beside what
 * the machine allows for the same work: turns of both, one after another in
 * one run, so that what else the machine does meets both. A line a path on
 * standard output, columns parted by tabs:
 *
 *	path product limit unit ratio spread level
 *
 * product and limit are medians; ratio is the median of the turns' ratios, and
 * spread how far their middle half reaches. tests/bench/table makes a table of
 * the lines.
 *
 * With BENCH_CLOCK=cpu in the environment turns are measured in CPU time of the
 * process and of the commands that it waited for: for a machine that does other
 * things too. What waits, or uses several threads, is not shown as it is then.
 */
#ifndef TESTS_BENCH_H
#define TESTS_BENCH_H

#include <stddef.h>

/* One turn. */
typedef void bench_fn(void *ctx);

enum { BENCH_TURNS = 7, BENCH_MOST = 25 };

struct bench {
	const char *unit; /* "GB/s" */
	double amount;	  /* of those units that a turn does, times seconds */
	int turns;	  /* at most BENCH_MOST; 0: BENCH_TURNS */
};

/* Measures both and prints the path's line; its name is as for printf. */
void bench_compare(const struct bench *b, bench_fn *product, bench_fn *limit,
	void *ctx, const char *path, ...) __attribute__((format(printf, 5, 6)));

/* From within a turn: so many seconds of it count, not all. */
void bench_took(double seconds);
/* Seconds of the clock that turns are measured by. */
double bench_now(void);
/* Seconds by which what goes on in another process counts, of the CPU that it
 * took: none when turns are measured by what time they take. */
double bench_others(double cpu);

/* What cannot be measured ends the bench: not 0 with the reason. */
void bench_need(int fine, const char *what);

#endif
