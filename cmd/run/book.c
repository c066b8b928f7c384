#include "cmd/run/book.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void book_begin(struct book *b, uint32_t fragments)
{
	book_release(b);
	b->fragments = fragments;
}

void book_release(struct book *b)
{
	for (size_t i = 0; i < b->learners; i++) {
		free(b->learner[i]->version);
		free(b->learner[i]->answer);
		free(b->learner[i]);
	}
	free(b->learner);
	free(b->held);
	free(b->merge);
	*b = (struct book){0};
}

/* The first learner whose name is not before that one. */
static size_t place_of(const struct book *b, const char *name)
{
	size_t low = 0, high = b->learners;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(b->learner[mid]->name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct book_learner *book_find(const struct book *b, const char *name)
{
	size_t i = place_of(b, name);

	return i < b->learners && !strcmp(b->learner[i]->name, name)
		       ? b->learner[i]
		       : NULL;
}

static struct book_learner *make_learner(struct book *b, const char *name)
{
	size_t i = place_of(b, name);
	struct book_learner *l = book_find(b, name);

	if (l)
		return l;
	b->learner = dl_resize(b->learner, b->learners + 1, sizeof *b->learner);
	memmove(b->learner + i + 1, b->learner + i,
		(b->learners - i) * sizeof *b->learner);
	b->learners++;
	l = b->learner[i] = dl_alloc(sizeof *l);
	strcpy(l->name, name);
	l->version = dl_alloc_array(b->fragments, sizeof *l->version);
	l->answer = dl_alloc_array(b->fragments, sizeof *l->answer);
	return l;
}

static void join(struct book *b, const struct dl_sync_event *ev)
{
	struct book_learner *l = make_learner(b, ev->learner);

	if (l->instance != ev->instance)
		memset(l->answer, 0, b->fragments * sizeof *l->answer);
	l->instance = ev->instance;
	l->here = 1;
	l->drained = 0;
	memcpy(l->version, ev->versions, b->fragments * sizeof *l->version);
}

static void hold(struct book *b, uint64_t push)
{
	if (!(b->helds & (b->helds - 1)))
		b->held = dl_resize(
			b->held, b->helds ? 2 * b->helds : 1, sizeof *b->held);
	b->held[b->helds++] = push;
	if (b->ids < push)
		b->ids = push;
}

static void merged(struct book *b, uint32_t p)
{
	for (size_t i = 0; i < b->merges; i++)
		if (b->merge[i].fragment == p) {
			b->merges--;
			memmove(b->merge + i, b->merge + i + 1,
				(b->merges - i) * sizeof *b->merge);
			return;
		}
}

void book_event(struct book *b, const struct dl_sync_event *ev)
{
	struct book_learner *l = ev->learner ? book_find(b, ev->learner) : NULL;

	if (ev->kind == DL_EV_JOIN)
		join(b, ev);
	else if (ev->kind == DL_EV_PUSH)
		hold(b, ev->push);
	else if (ev->kind == DL_EV_MERGED)
		merged(b, ev->fragment);
	else if (l && ev->kind == DL_EV_LEAVE)
		l->here = 0;
	else if (l && ev->kind == DL_EV_DRAINED)
		l->drained = 1;
	else if (l && ev->kind == DL_EV_APPLIED)
		l->version[ev->fragment] = ev->version;
}

static void release(struct book *b, uint64_t push)
{
	for (size_t i = 0; i < b->helds; i++)
		if (b->held[i] == push) {
			b->held[i] = b->held[--b->helds];
			return;
		}
}

static void answered(struct book *b, const struct dl_sync_action *a)
{
	struct book_learner *l = book_find(b, a->learner);
	struct book_answer *to = l ? l->answer + a->fragment : NULL;

	if (a->taken == DL_TAKEN_SETTLED)
		return;
	b->last = (struct book_answer){a->seq, a->taken, a->refusal};
	/* What was said of it first tells more. */
	if (to && (a->seq > to->seq ||
			  (a->seq == to->seq && a->taken != DL_TAKEN_AGAIN)))
		*to = b->last;
}

void book_action(struct book *b, const struct dl_sync_action *a)
{
	struct book_learner *l;

	switch (a->kind) {
	case DL_ACT_WELCOME:
		l = book_find(b, a->learner);
		l->clock = a->step;
		break;
	case DL_ACT_TAKEN:
		answered(b, a);
		break;
	case DL_ACT_RELEASE:
		release(b, a->push);
		break;
	case DL_ACT_MERGE:
		b->merge = dl_resize(b->merge, b->merges + 1, sizeof *b->merge);
		b->merge[b->merges++] = *a;
		break;
	default:
		break;
	}
}

int book_holds(const struct book *b, uint64_t push)
{
	for (size_t i = 0; i < b->helds; i++)
		if (b->held[i] == push)
			return 1;
	return 0;
}

const struct dl_sync_action *book_merge(const struct book *b, uint32_t p)
{
	for (size_t i = 0; i < b->merges; i++)
		if (b->merge[i].fragment == p)
			return b->merge + i;
	return NULL;
}

static int on_start(void *ctx, const struct dl_tape_start *s, struct dl_err *e)
{
	(void)e;
	book_begin(ctx, s->config.schedule.fragments);
	return 0;
}

static int on_event(
	void *ctx, const struct dl_tape_line *line, struct dl_err *e)
{
	(void)e;
	book_event(ctx, &line->event);
	return 0;
}

static void on_action(void *ctx, const struct dl_sync_action *a)
{
	book_action(ctx, a);
}

struct dl_replay_watcher book_watcher(struct book *b)
{
	return (struct dl_replay_watcher){
		b, on_start, NULL, on_event, on_action};
}
