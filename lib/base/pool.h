/*
 * A small pool of threads: run f over n blocks. Blocks are taken in any order
 * by any thread, so f must not depend on which; results that are reduced are
 * kept a block and combined in block order by the caller.
 */
#ifndef DL_BASE_POOL_H
#define DL_BASE_POOL_H

#include <stddef.h>

struct dl_pool;

/* threads counts the caller; 0 asks for one a CPU this process may use. */
struct dl_pool *dl_pool_new(unsigned threads);
void dl_pool_free(struct dl_pool *p); /* NULL is fine */
unsigned dl_pool_threads(const struct dl_pool *p); /* 1 for NULL */

/* Calls f(ctx, i) for i in [0, n) and returns when all are done. A NULL pool
 * runs them here, in order. One dl_pool_run at a time. */
void dl_pool_run(struct dl_pool *p, size_t n, void (*f)(void *ctx, size_t i),
	void *ctx);

#endif
