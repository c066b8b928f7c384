#include "cmd/serve/hashing.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/serve/server.h"

/* One fragment at a time goes to the thread and back. */
struct job {
	struct dl_store_hashes hashes;
	struct dl_err why; /* code 0: they are found */
};

struct hashing {
	struct server *server;
	unsigned char *wanted; /* P flags */
	uint32_t last;	       /* that was begun */
	struct job job;
	int busy;
	atomic_int stop;
	/* No lock, which the loop might have to wait for while the thread
	 * waits for a processor: a byte a job there, and a byte back. */
	int ends[2]; /* the loop's and the thread's */
	pthread_t thread;
};

static void use_idle_time(void)
{
#ifdef SCHED_IDLE
	pthread_setschedparam(
		pthread_self(), SCHED_IDLE, &(struct sched_param){0});
#endif
}

static void *hash_all(void *arg)
{
	struct hashing *h = arg;
	char byte;

	use_idle_time();
	while (read(h->ends[1], &byte, 1) == 1) {
		h->job.why = (struct dl_err){0};
		dl_store_hash(h->server->globals.store, &h->job.hashes,
			&h->stop, &h->job.why);
		(void)!write(h->ends[1], "", 1);
	}
	return NULL;
}

static int next_wanted(struct hashing *h)
{
	uint32_t fragments = h->server->layout->fragments;

	for (uint32_t i = 1; i <= fragments; i++) {
		uint32_t p = (h->last + i) % fragments;

		if (!h->wanted[p])
			continue;
		h->wanted[p] = 0;
		h->job.hashes.p = h->last = p;
		if (!dl_store_hash_begin(
			    h->server->globals.store, &h->job.hashes))
			return 1;
	}
	return 0;
}

static void work(struct hashing *h)
{
	if (h->busy || !next_wanted(h))
		return;
	h->busy = 1;
	(void)!write(h->ends[0], "", 1);
}

static void on_hashed(void *ctx, int fd, short revents)
{
	struct hashing *h = ctx;
	char byte;

	(void)revents;
	if (read(fd, &byte, 1) != 1)
		return;
	h->busy = 0;
	/* The next commit may have removed them. */
	if (h->job.why.code && h->job.why.code != DL_NOINPUT)
		cmd_warn("%s", h->job.why.text);
	if (!h->job.why.code)
		dl_store_hash_end(h->server->globals.store, &h->job.hashes);
	work(h);
}

static void release(struct hashing *h)
{
	close(h->ends[0]);
	close(h->ends[1]);
	free(h->wanted);
	free(h);
}

static int start(struct hashing *h)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&h->thread, NULL, hash_all, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

int hashing_begin(struct server *s, struct dl_err *e)
{
	struct hashing *h = dl_alloc(sizeof *h);

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, h->ends)) {
		dl_fail_sys(e, DL_OSERR, "socketpair");
		free(h);
		return e->code;
	}
	h->server = s;
	h->wanted = dl_alloc(s->layout->fragments);
	if (start(h)) {
		release(h);
		return dl_fail(e, DL_OSERR, "cannot start a thread");
	}
	s->hashing = h;
	dl_loop_set(&s->loop, h->ends[0], POLLIN, on_hashed, h);
	return 0;
}

void hashing_add(struct server *s, uint32_t p)
{
	s->hashing->wanted[p] = 1;
	work(s->hashing);
}

void hashing_end(struct server *s)
{
	struct hashing *h = s->hashing;
	struct dl_err e;

	if (!h)
		return;
	atomic_store(&h->stop, 1);
	shutdown(h->ends[0], SHUT_WR);
	pthread_join(h->thread, NULL);
	dl_loop_remove(&s->loop, h->ends[0]);
	release(h);
	if (dl_store_hash_save(s->globals.store, &e))
		cmd_warn("%s", e.text);
}
