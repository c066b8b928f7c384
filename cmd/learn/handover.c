#include "cmd/learn/handover.h"

#include <stdlib.h>

#include "cmd/learn/learner.h"

char *handover_file(const struct learner *l, const char *what, uint32_t p)
{
	return dl_sprintf("%s/%s.%u", l->scratch.path, what, p);
}

static size_t elements_of(const struct learner *l, const struct push *push)
{
	return l->layout.fragment[push->what.fragment].elements;
}

/* The next push whose values the trainer has written out; the smallest when
 * time is short. */
static struct push *next_written(const struct learner *l)
{
	struct push *next = NULL;

	for (struct push *push = l->weights.push; push; push = push->next) {
		if (!push->written || push->data)
			continue;
		if (!next || elements_of(l, push) < elements_of(l, next))
			next = push;
		if (!drain_asked(l))
			break;
	}
	return next;
}

void handover_read(struct learner *l, int64_t now)
{
	struct push *push;
	struct dl_err e;

	while ((push = next_written(l))) {
		char *path = handover_file(l, "send", push->what.fragment);

		push->written = 0;
		if (weights_read_push(&l->weights, push, path, &e)) {
			saves_suspect(l);
			dl_host_fail(l->trainer.host, now, &e);
		} else {
			l->trainer.deaths = 0;
			uplink_push(l, push);
		}
		free(path);
	}
}

static struct push *find_unread(const struct learner *l)
{
	struct push *push = l->weights.push;

	while (push && push->data)
		push = push->next;
	return push;
}

void handover_lose(struct learner *l, int64_t now)
{
	struct push *push;

	while ((push = find_unread(l))) {
		struct dl_learn_event ev = {.kind = DL_LE_FAILED,
			.now = now,
			.fragment = push->what.fragment,
			.seq = push->what.seq};

		push->settled = 1;
		weights_drop(&l->weights, push);
		learner_event(l, &ev);
	}
}
