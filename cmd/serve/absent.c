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

	while (i < a->n && strcmp(a->who[i].name, name) != 0)
		i++;
	return i;
}

void absent_add(struct absent *a, const char *name, int64_t now)
{
	size_t i = find(a, name);

	if (i == a->n) {
		if (a->n == a->cap) {
			a->cap = a->cap ? 2 * a->cap : 8;
			a->who = dl_resize(a->who, a->cap, sizeof *a->who);
		}
		strcpy(a->who[a->n++].name, name);
	}
	a->who[i].at = now;
}

static void drop(struct absent *a, size_t i)
{
	a->who[i] = a->who[--a->n];
}

void absent_return(struct server *s, const char *name, int64_t now)
{
	struct absent *a = &s->absent;
	size_t i = find(a, name);

	if (i == a->n)
		return;
	drop(a, i);
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
	for (size_t i = a->n; i-- > 0;)
		if (a->who[i].at + wait <= now)
			drop(a, i);
	if (!a->n)
		return;
	a->until = now;
	for (size_t i = 0; i < a->n; i++)
		if (a->until < a->who[i].at + wait)
			a->until = a->who[i].at + wait;
	cmd_note("the run is over; waits %s to tell %s%s",
		dl_human_duration(time, a->until - now), a->who[0].name,
		a->n > 1 ? " and others who were cut off"
			 : ", who was cut off");
}

void absent_release(struct absent *a)
{
	free(a->who);
}
