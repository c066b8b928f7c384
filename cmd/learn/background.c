#include "cmd/learn/background.h"

#include <sched.h>

#ifdef SCHED_BATCH

static int set_policy(int policy)
{
	struct sched_param none = {.sched_priority = 0};

	return sched_setscheduler(0, policy, &none);
}

int background_enter(void)
{
	return sched_getscheduler(0) == SCHED_OTHER && !set_policy(SCHED_BATCH);
}

void background_leave(void)
{
	set_policy(SCHED_OTHER);
}

#else

int background_enter(void)
{
	return 0;
}

void background_leave(void)
{
}

#endif
