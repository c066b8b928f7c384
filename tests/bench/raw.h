/*
 * The pattern of a synchronisation over bare sockets: the same bytes up from
 * all learners, and each fragment down to all once it is there from all. One
 * thread an end, large reads and writes of the same memory.
 */
#ifndef TESTS_BENCH_RAW_H
#define TESTS_BENCH_RAW_H

#include <stddef.h>

/*
 * So many learners, here, exchange `fragments` fragments of that many bytes
 * with a syncer, another process, over loopback tcp set up as links are; the
 * time it took, in seconds.
 */
double raw_sync(unsigned learners, size_t fragments, size_t bytes);

#endif
