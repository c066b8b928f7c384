#include "train/pace.h"

#include <time.h>

#include "base/num.h"

void dl_pace_wait(struct dl_pace *p)
{
	int64_t now = dl_now();
	struct timespec rest;

	if (!p->period)
		return;
	if (!p->due)
		p->due = now;
	else if (p->due > now) {
		rest.tv_sec = (p->due - now) / DL_SECOND;
		rest.tv_nsec = (p->due - now) % DL_SECOND;
		nanosleep(&rest, NULL);
	}
	if (p->due < now)
		p->due = now;
	p->due += p->period;
}
