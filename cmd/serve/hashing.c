#include "cmd/serve/hashing.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/thread.h"
#include "cmd/cmd.h"
#include "cmd/serve/server.h"

/* One fragment at a time goes to the thread and back. */
struct job {
	struct dl_store_hashes hashes;
	struct dl_err why; /* code 0: they are found */
};

/* There is no job; it is the thread's; it is done. */
enum { NOBODYS, THREADS, DONE };

struct hashing {
	struct server *server;
	unsigned char *wanted; /* P flags */
	uint32_t last;	       /* that was begun */
	struct job job;
	atomic_int whose; /* the job is, of the enum above */
	atomic_int stop;
	/* No lock, which the loop might have to wait for while the thread
	 * waits for a processor: a byte to the thread, and one back. */
	int ends[2]; /* the loop's and the thread's */
	pthread_t thread;
};

static void *hash_all(void *arg)
{
	struct hashing *h = arg;
	char byte;

	dl_thread_idle();
	while (read(h->ends[1], &byte, 1) == 1 &&
		atomic_load(&h->whose) == THREADS) {
		h->job.why = (struct dl_err){0};
		dl_store_hash(h->server->globals.store, &h->job.hashes,
			&h->stop, &h->job.why);
		atomic_store(&h->whose, DONE);
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
	if (atomic_load(&h->whose) != NOBODYS || !next_wanted(h))
		return;
	atomic_store(&h->whose, THREADS);
	(void)!write(h->ends[0], "", 1);
}

static void on_hashed(void *ctx, int fd, short revents)
{
	struct hashing *h = ctx;
	char byte;

	(void)revents;
	if (read(fd, &byte, 1) != 1 || atomic_load(&h->whose) != DONE)
		return;
	/* The next commit may have removed them. */
	if (h->job.why.code && h->job.why.code != DL_NOINPUT)
		cmd_warn("%s", h->job.why.text);
	if (!h->job.why.code)
		dl_store_hash_end(h->server->globals.store, &h->job.hashes);
	atomic_store(&h->whose, NOBODYS);
	work(h);
}

static void release(struct hashing *h)
{
	close(h->ends[0]);
	close(h->ends[1]);
	free(h->wanted);
	free(h);
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
	if (dl_thread_start(&h->thread, hash_all, h)) {
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
