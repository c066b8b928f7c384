/*
 * For tests that crash programs: runs them below the crash shim (plan.h).
 */
#ifndef TESTS_CRASH_CRASH_H
#define TESTS_CRASH_CRASH_H

#include "base/mem.h"

struct crash {
	const char *what;   /* DL_CRASH_DO; NULL: nothing happens */
	unsigned at;	    /* DL_CRASH_AT */
	unsigned seed;	    /* DL_CRASH_SEED */
	const char *skip;   /* DL_CRASH_SKIP, or NULL */
	const char *log;    /* DL_CRASH_LOG, or NULL */
	void (*look)(void); /* when it has stopped, with at 0 */
};

/* The first thing in main: starts the program again with the shim preloaded. It
 * watches nothing until crash_run. */
void crash_begin(char **argv);

/* A new folder below /tmp; "root" in it is for the files of what is crashed.
 * Exits when there cannot be one. */
const char *crash_folder(void);
const char *crash_root_folder(void);
/* Empties the root, and what the shim left beside it. */
void crash_clean(void);
/* Removes all of it. */
void crash_done(void);

/*
 * Runs a function in a process of its own with that plan, its standard output
 * into out (cleared first) when that is not NULL: what it returns, or CRASHED
 * when the plan killed it. Exits when it died of anything else.
 */
enum { CRASHED = -1 };
int crash_run(const struct crash *plan, int (*run)(void *arg), void *arg,
	struct dl_buf *out);

/* How many calls of that kind ("": of any) it makes when nothing happens. */
unsigned crash_count(int (*run)(void *arg), void *arg, const char *call);

/* 1 when every call is to be tried and not a sample (DL_CRASH_ALL). */
int crash_all(void);

#endif
