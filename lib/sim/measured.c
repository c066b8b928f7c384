#include "sim/measured.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "state/tape.h"

enum { STRETCH = 32 };

struct learner {
	char name[DL_NAME_MAX + 1];
	/* The report that a stretch of steps begins with. */
	uint64_t instance, steps;
	int64_t now;
	int known;    /* there is one since the last start */
	double *pace; /* seconds a step, of each stretch */
	size_t paces, room;
	double seconds, done;
};

struct reading {
	struct learner *learner;
	size_t learners;
	uint32_t fragments;
	uint64_t h, tau;
	uint64_t *values; /* of each fragment, when it was pushed */
	double up, down, bytes_up, bytes_down;
};

static struct learner *find(struct reading *r, const char *name)
{
	struct learner *l;

	for (size_t i = 0; i < r->learners; i++)
		if (!strcmp(r->learner[i].name, name))
			return &r->learner[i];
	r->learner = dl_resize(r->learner, r->learners + 1, sizeof *l);
	l = &r->learner[r->learners++];
	*l = (struct learner){0};
	strcpy(l->name, name);
	return l;
}

static void begin(struct reading *r, const struct dl_sync_config *c)
{
	for (size_t i = 0; i < r->learners; i++)
		r->learner[i].known = 0;
	if (c->schedule.fragments > r->fragments) {
		r->values = dl_resize(
			r->values, c->schedule.fragments, sizeof *r->values);
		memset(r->values + r->fragments, 0,
			(c->schedule.fragments - r->fragments) *
				sizeof *r->values);
	}
	r->fragments = c->schedule.fragments;
	r->h = c->schedule.h;
	r->tau = c->tau;
}

static void mark(struct learner *l, const struct dl_sync_event *ev)
{
	l->instance = ev->instance;
	l->steps = ev->steps;
	l->now = ev->now;
	l->known = 1;
}

/* Reports come late, and several at once, from a syncer that is busy: only
 * stretches of many steps have a pace. */
static void report(struct reading *r, const struct dl_sync_event *ev)
{
	struct learner *l = find(r, ev->learner);
	double seconds = (double)(ev->now - l->now) / DL_SECOND;
	uint64_t steps = ev->steps - l->steps;

	if (!l->known || l->instance != ev->instance || ev->steps < l->steps) {
		mark(l, ev);
		return;
	}
	if (steps < STRETCH || steps < r->h)
		return;
	if (l->paces == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->pace = dl_resize(l->pace, l->room, sizeof *l->pace);
	}
	l->pace[l->paces++] = seconds / (double)steps;
	l->seconds += seconds;
	l->done += (double)steps;
	mark(l, ev);
}

static void take(struct reading *r, const struct dl_tape_line *line)
{
	const struct dl_sync_event *ev = &line->event;

	if (line->kind == DL_TAPE_START) {
		begin(r, &line->start.config);
	} else if (ev->kind == DL_EV_STEP) {
		report(r, ev);
	} else if (ev->kind == DL_EV_PUSH) {
		if (ev->fragment < r->fragments &&
			ev->elements > r->values[ev->fragment])
			r->values[ev->fragment] = ev->elements;
		r->up += (double)ev->elements;
		r->bytes_up += (double)ev->bytes;
	} else if (ev->kind == DL_EV_APPLIED) {
		r->down += (double)ev->elements;
		r->bytes_down += (double)ev->bytes;
	}
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* An undisturbed step of l. */
static double fastest(struct learner *l)
{
	qsort(l->pace, l->paces, sizeof *l->pace, by_number);
	return l->pace[l->paces / 10];
}

static void sum_time(
	struct dl_measured *m, struct reading *r, struct dl_bandwidth_config *c)
{
	double useful = 0;

	for (size_t i = 0; i < r->learners; i++) {
		struct learner *l = &r->learner[i];

		if (!l->paces)
			continue;
		m->learners++;
		m->seconds += l->seconds;
		m->steps += l->done;
		useful += l->done * (c->step > 0 ? c->step : fastest(l));
	}
	if (!m->learners)
		return;
	m->utilisation = useful / m->seconds;
	c->step = useful / m->steps;
}

static void sum_values(const struct reading *r, struct dl_bandwidth_config *c)
{
	uint64_t most = 0;

	c->values = 0;
	for (uint32_t p = 0; p < r->fragments; p++) {
		c->values += (double)r->values[p];
		if (r->values[p] > most)
			most = r->values[p];
	}
	c->fragments = r->fragments;
	c->h = r->h;
	c->tau = r->tau;
	c->largest = (double)most * r->fragments / c->values;
	c->up = 8 * r->bytes_up / r->up;
	c->down = 8 * r->bytes_down / r->down;
}

static int judge(struct dl_measured *m, struct reading *r,
	struct dl_bandwidth_config *c, const char *place, struct dl_err *e)
{
	*m = (struct dl_measured){
		.bytes_up = r->bytes_up, .bytes_down = r->bytes_down};
	sum_time(m, r, c);
	if (!m->learners)
		return dl_fail(e, DL_DATA, "%s: no learner reports %d steps",
			place, STRETCH);
	if (r->up <= 0 || r->down <= 0)
		return dl_fail(e, DL_DATA, "%s: nothing was pushed and applied",
			place);
	sum_values(r, c);
	return 0;
}

int dl_measured_read(struct dl_measured *m, struct dl_bandwidth_config *c,
	int fd, const char *place, struct dl_err *e)
{
	struct reading r = {0};
	struct dl_tape_reader tape;
	struct dl_tape_line line = {0};
	int rc;

	dl_tape_reader_init(&tape, fd, place);
	while (!(rc = dl_tape_next(&tape, &line, e)))
		take(&r, &line);
	dl_tape_line_release(&line);
	dl_tape_reader_release(&tape);
	if (rc == DL_NO)
		rc = judge(m, &r, c, place, e);
	for (size_t i = 0; i < r.learners; i++)
		free(r.learner[i].pace);
	free(r.learner);
	free(r.values);
	return rc;
}
