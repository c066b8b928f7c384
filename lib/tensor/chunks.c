#include "tensor/chunks.h"

#include <pthread.h>

struct chunks {
	uint64_t elements;
	dl_chunk_fn *f;
	void *ctx;
	pthread_mutex_t lock; /* of what follows */
	uint64_t failed;      /* the first that did, or how many there are */
	struct dl_err err;
};

static void run(void *ctx, size_t i)
{
	struct chunks *k = ctx;
	uint64_t at = (uint64_t)i * DL_CHUNK, left = k->elements - at;
	struct dl_err e;
	int late;

	pthread_mutex_lock(&k->lock);
	late = i > k->failed;
	pthread_mutex_unlock(&k->lock);
	if (late || !k->f(k->ctx, at, left < DL_CHUNK ? left : DL_CHUNK, &e))
		return;
	pthread_mutex_lock(&k->lock);
	if (i < k->failed) {
		k->failed = i;
		k->err = e;
	}
	pthread_mutex_unlock(&k->lock);
}

int dl_chunks(struct dl_pool *pool, uint64_t elements, dl_chunk_fn *f,
	void *ctx, struct dl_err *e)
{
	size_t n = elements / DL_CHUNK + (elements % DL_CHUNK != 0);
	struct chunks k = {.elements = elements,
		.f = f,
		.ctx = ctx,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.failed = n};

	dl_pool_run(pool, n, run, &k);
	if (k.failed == n)
		return 0;
	*e = k.err;
	return e->code;
}
