/* Errands: run in order by another thread, told of in the loop; dropped at the
 * end. */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

/* To see when it has been told to stop. */
#include "link/errand.c"
#include "tests/tap.h"

struct task {
	struct dl_errand errand;
	int number;
	sem_t *started, *gate; /* to wait for, or NULL */
};

static pthread_t here;
static int ran[8], runs, told[8], tolds, dropped, elsewhere, blocked;

static void run(struct dl_errand *errand)
{
	struct task *t = (struct task *)errand;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	blocked = sigismember(&mask, SIGTERM);
	elsewhere = !pthread_equal(here, pthread_self());
	ran[runs++] = t->number;
	if (t->started)
		sem_post(t->started);
	if (t->gate)
		sem_wait(t->gate);
}

static void done(struct dl_errand *errand)
{
	struct task *t = (struct task *)errand;

	dropped += errand->dropped;
	told[tolds++] = t->number;
	free(t);
}

static void give(
	struct dl_errands *list, int number, sem_t *started, sem_t *gate)
{
	struct task *t = dl_alloc(sizeof *t);

	*t = (struct task){{.run = run, .done = done}, number, started, gate};
	dl_errands_add(list, &t->errand);
}

static sem_t gate;

static void *open_when_stopped(void *arg)
{
	struct dl_errands *list = arg;
	int stopped = 0;

	while (!stopped) {
		sched_yield();
		pthread_mutex_lock(&list->lock);
		stopped = list->stop;
		pthread_mutex_unlock(&list->lock);
	}
	sem_post(&gate);
	return NULL;
}

int main(void)
{
	struct dl_loop loop = DL_LOOP_INIT;
	struct dl_err e = {0};
	struct dl_errands *list = dl_errands_new(&loop, &e);
	sem_t started;
	pthread_t opener;

	here = pthread_self();
	sem_init(&gate, 0, 0);
	sem_init(&started, 0, 0);
	ok(list != NULL, "a thread: %s", e.text);
	for (int i = 0; i < 3; i++)
		give(list, i, NULL, NULL);
	ok(dl_errands_left(list) == 3 && !tolds, "three are given");
	while (dl_errands_left(list))
		if (dl_loop_once(&loop, INT64_MAX, &e))
			abort();
	ok(runs == 3 && ran[0] == 0 && ran[1] == 1 && ran[2] == 2,
		"they were run in order");
	ok(tolds == 3 && told[0] == 0 && told[1] == 1 && told[2] == 2 &&
			!dropped,
		"and told of");
	ok(elsewhere && blocked, "by another thread, which takes no signals");
	give(list, 3, &started, &gate);
	give(list, 4, NULL, NULL);
	sem_wait(&started);
	if (pthread_create(&opener, NULL, open_when_stopped, list))
		abort();
	dl_errands_free(list);
	pthread_join(opener, NULL);
	ok(tolds == 5 && told[3] == 3 && told[4] == 4 && dropped >= 1,
		"the end waits for one and drops the rest");
	ok(runs == 4, "which is not run");
	dl_loop_release(&loop);
	return done_testing();
}
