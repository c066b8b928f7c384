/*
 * For tests that crash programs: runs them below the crash shim (plan.h).
 */
#ifndef TESTS_CRASH_CRASH_H
#define TESTS_CRASH_CRASH_H

#include "base/mem.h"

struct crash {
	const char *what; /* DL_CRASH_DO; NULL: nothing happens */
	unsigned at;	  /* DL_CRASH_AT */
	unsigned seed;	  /* DL_CRASH_SEED */
	const char *skip; /* DL_CRASH_SKIP, or NULL */
	const char *log;  /* DL_CRASH_LOG, or NULL */
};

/* A new folder below /tmp, without its name's end; "root" in it is for the
 * files that programs under test make. Exits when there cannot be one. */
const char *crash_folder(void);
const char *crash_root_folder(void);
/* Empties the root, and what the shim left beside it. */
void crash_clean(void);
/* Removes all of it. */
void crash_done(void);

/*
 * Runs argv with that plan, standard output into out (cleared first) when it is
 * not NULL: its exit status, or CRASHED when the plan killed it. Exits when it
 * died of anything else.
 */
enum { CRASHED = -1 };
int crash_run(
	const struct crash *plan, const char *const argv[], struct dl_buf *out);

/* How many calls, or syncs, argv makes: from a run with a log. */
unsigned crash_count(const char *const argv[], const char *call);

/* 1 when every call is to be tried and not a sample (DL_CRASH_ALL). */
int crash_all(void);

#endif
