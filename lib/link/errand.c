#include "link/errand.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/thread.h"

struct queue {
	struct dl_errand *first, **end;
};

struct dl_errands {
	struct dl_loop *loop;
	pthread_t thread;
	pthread_mutex_t lock; /* of the queues and stop */
	pthread_cond_t more;
	struct queue given, finished;
	int stop;
	int pipe[2]; /* a byte an errand that was run */
	size_t left;
};

static void put(struct queue *q, struct dl_errand *errand)
{
	errand->next = NULL;
	*q->end = errand;
	q->end = &errand->next;
}

static struct dl_errand *take(struct queue *q)
{
	struct dl_errand *first = q->first;

	if (first && !(q->first = first->next))
		q->end = &q->first;
	return first;
}

static void *run_all(void *arg)
{
	struct dl_errands *list = arg;

	pthread_mutex_lock(&list->lock);
	while (!list->stop) {
		struct dl_errand *errand = take(&list->given);

		if (!errand) {
			pthread_cond_wait(&list->more, &list->lock);
			continue;
		}
		pthread_mutex_unlock(&list->lock);
		errand->run(errand);
		pthread_mutex_lock(&list->lock);
		put(&list->finished, errand);
		/* When the pipe is full the loop has been told. */
		(void)!write(list->pipe[1], "", 1);
	}
	pthread_mutex_unlock(&list->lock);
	return NULL;
}

static struct dl_errand *take_finished(struct dl_errands *list)
{
	struct dl_errand *errand;

	pthread_mutex_lock(&list->lock);
	errand = take(&list->finished);
	pthread_mutex_unlock(&list->lock);
	return errand;
}

static void on_finished(void *ctx, int fd, short revents)
{
	struct dl_errands *list = ctx;
	struct dl_errand *errand;
	char bytes[64];

	(void)revents;
	while (read(fd, bytes, sizeof bytes) > 0)
		;
	while ((errand = take_finished(list))) {
		list->left--;
		errand->done(errand);
	}
}

struct dl_errands *dl_errands_new(struct dl_loop *loop, struct dl_err *e)
{
	struct dl_errands *list = dl_alloc(sizeof *list);

	list->loop = loop;
	list->given.end = &list->given.first;
	list->finished.end = &list->finished.first;
	if (pipe2(list->pipe, O_NONBLOCK | O_CLOEXEC)) {
		dl_fail_sys(e, DL_OSERR, "pipe");
		free(list);
		return NULL;
	}
	pthread_mutex_init(&list->lock, NULL);
	pthread_cond_init(&list->more, NULL);
	if (dl_thread_start(&list->thread, run_all, list)) {
		dl_fail(e, DL_OSERR, "cannot start a thread");
		close(list->pipe[0]);
		close(list->pipe[1]);
		free(list);
		return NULL;
	}
	dl_loop_set(loop, list->pipe[0], POLLIN, on_finished, list);
	return list;
}

void dl_errands_add(struct dl_errands *list, struct dl_errand *errand)
{
	errand->dropped = 0;
	list->left++;
	pthread_mutex_lock(&list->lock);
	put(&list->given, errand);
	pthread_cond_signal(&list->more);
	pthread_mutex_unlock(&list->lock);
}

size_t dl_errands_left(const struct dl_errands *list)
{
	return list->left;
}

void dl_errands_wait(struct dl_errands *list)
{
	struct pollfd finished = {.fd = list->pipe[0], .events = POLLIN};

	while (list->left) {
		poll(&finished, 1, -1);
		on_finished(list, finished.fd, 0);
	}
}

void dl_errands_free(struct dl_errands *list)
{
	struct dl_errand *errand;

	if (!list)
		return;
	pthread_mutex_lock(&list->lock);
	list->stop = 1;
	pthread_cond_signal(&list->more);
	pthread_mutex_unlock(&list->lock);
	pthread_join(list->thread, NULL);
	while ((errand = take(&list->finished)) ||
		(errand = take(&list->given))) {
		errand->dropped = 1;
		errand->done(errand);
	}
	dl_loop_remove(list->loop, list->pipe[0]);
	close(list->pipe[0]);
	close(list->pipe[1]);
	pthread_mutex_destroy(&list->lock);
	pthread_cond_destroy(&list->more);
	free(list);
}
