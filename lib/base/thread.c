#include "base/thread.h"

#include <sched.h>
#include <signal.h>

int dl_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

void dl_thread_idle(void)
{
#ifdef SCHED_IDLE
	pthread_setschedparam(
		pthread_self(), SCHED_IDLE, &(struct sched_param){0});
#endif
}
