/*
 * What a stretch of a program costs: allocations, system calls, bytes that are
 * written. The program is linked with --wrap for malloc, calloc, realloc and
 * free, and is traced by a parent of its own.
 */
#ifndef TESTS_SYNC_TALLY_H
#define TESTS_SYNC_TALLY_H

#include <stdint.h>

struct tally {
	uint64_t allocations;
	int64_t kept; /* of them, freed ones taken off */
	uint64_t calls, written;
};

/* Runs test in a child, traced, if the system lets us: its exit status. It must
 * not leave by itself. */
int tally_run(int (*test)(int traced));

void tally_begin(void);
void tally_end(struct tally *out);

#endif
