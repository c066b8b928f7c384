#include "cmd/serve/absent.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/server.h"

static const int64_t telling_time = 5 * DL_SECOND;

static size_t find(const struct absent *a, const char *name)
{
	size_t i = 0;

	while (i < a->n && strcmp(a->name[i], name) != 0)
		i++;
	return i;
}

void absent_add(struct absent *a, const char *name)
{
	if (find(a, name) < a->n)
		return;
	if (a->n == a->cap) {
		a->cap = a->cap ? 2 * a->cap : 8;
		a->name = dl_resize(a->name, a->cap, sizeof *a->name);
	}
	strcpy(a->name[a->n++], name);
}

void absent_return(struct server *s, const char *name, int64_t now)
{
	struct absent *a = &s->absent;
	size_t i = find(a, name);

	if (i == a->n)
		return;
	memmove(a->name[i], a->name[a->n - 1], sizeof *a->name);
	a->n--;
	if (s->ending)
		s->leave_at = now + telling_time;
}

void absent_wait(struct server *s, int64_t now)
{
	struct absent *a = &s->absent;
	int64_t wait = s->options->sync.config.end_ns;
	char time[DL_HUMAN];

	if (wait > DL_RETURN_NS)
		wait = DL_RETURN_NS;
	a->until = now + wait;
	if (a->n && wait)
		cmd_note("the run is over; waits %s to tell %s%s",
			dl_human_duration(time, wait), a->name[0],
			a->n > 1 ? " and others who were cut off"
				 : ", who was cut off");
}

void absent_release(struct absent *a)
{
	free(a->name);
}
