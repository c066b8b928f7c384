#include "base/pool.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

/* A thread takes its share in about so many runs: blocks one after another, so
 * that what is fetched beyond a block's end is mostly its own. */
enum { RUNS = 64 };

struct dl_pool {
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	pthread_t *thread;
	unsigned count;  /* helper threads, without the caller */
	unsigned busy;   /* helpers at the current run */
	unsigned run;    /* rises by one a run */
	int open;        /* who wakes up late is not waited for */
	int stop;
	void (*f)(void *, size_t);
	void *ctx;
	size_t n;
	atomic_size_t next;
};

static void take_blocks(struct dl_pool *p)
{
	size_t run = p->n / (RUNS * (p->count + 1)) + 1, i;

	while ((i = atomic_fetch_add(&p->next, run)) < p->n)
		for (size_t end = i + run; i < end && i < p->n; i++)
			p->f(p->ctx, i);
}

static void *helper(void *arg)
{
	struct dl_pool *p = arg;
	unsigned seen = 0;

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while ((p->run == seen || !p->open) && !p->stop)
			pthread_cond_wait(&p->start, &p->lock);
		if (p->stop)
			break;
		seen = p->run;
		p->busy++;
		pthread_mutex_unlock(&p->lock);
		take_blocks(p);
		pthread_mutex_lock(&p->lock);
		if (!--p->busy)
			pthread_cond_signal(&p->done);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static unsigned usable_cpus(void)
{
#ifdef CPU_COUNT
	cpu_set_t set;

	if (!sched_getaffinity(0, sizeof set, &set))
		return (unsigned)CPU_COUNT(&set);
#endif
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : (unsigned)n;
}

struct dl_pool *dl_pool_new(unsigned threads)
{
	struct dl_pool *p = dl_alloc(sizeof *p);

	if (!threads)
		threads = usable_cpus();
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->start, NULL);
	pthread_cond_init(&p->done, NULL);
	p->thread = dl_alloc_array(threads, sizeof *p->thread);
	/* With fewer threads than asked for, the same work is done. */
	while (p->count + 1 < threads
		&& !dl_thread_start(&p->thread[p->count], helper, p))
		p->count++;
	return p;
}

void dl_pool_free(struct dl_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = 1;
	pthread_cond_broadcast(&p->start);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->count; i++)
		pthread_join(p->thread[i], NULL);
	pthread_cond_destroy(&p->start);
	pthread_cond_destroy(&p->done);
	pthread_mutex_destroy(&p->lock);
	free(p->thread);
	free(p);
}

unsigned dl_pool_threads(const struct dl_pool *p)
{
	return p ? p->count + 1 : 1;
}

void dl_pool_run(struct dl_pool *p, size_t n, void (*f)(void *ctx, size_t i),
	void *ctx)
{
	if (!p || !p->count || n < 2) {
		for (size_t i = 0; i < n; i++)
			f(ctx, i);
		return;
	}
	pthread_mutex_lock(&p->lock);
	p->f = f;
	p->ctx = ctx;
	p->n = n;
	atomic_store(&p->next, 0);
	p->open = 1;
	p->run++;
	pthread_cond_broadcast(&p->start);
	pthread_mutex_unlock(&p->lock);
	take_blocks(p);
	pthread_mutex_lock(&p->lock);
	p->open = 0;
	while (p->busy)
		pthread_cond_wait(&p->done, &p->lock);
	pthread_mutex_unlock(&p->lock);
}
