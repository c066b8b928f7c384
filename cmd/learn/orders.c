#include "cmd/learn/orders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/learn/handover.h"
#include "cmd/learn/learner.h"

static void queue(struct trainer *t, const struct dl_learn_action *a)
{
	if (t->jobs == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 64;
		t->job = dl_resize(t->job, t->cap, sizeof *t->job);
	}
	t->job[t->jobs++] = *a;
}

void orders_take(struct learner *l, const struct dl_learn_action *a)
{
	struct trainer *t = &l->trainer;

	if (a->kind == DL_LA_COPY)
		weights_push(&l->weights, a);
	/* Now: newer ones may come before the trainer is there to load. */
	if (a->kind == DL_LA_LOAD)
		weights_adopt(&l->weights, l->core);
	if (a->kind == DL_LA_EXPORT && !export_note(l, a))
		return;
	/* It does not stand at a boundary: it is not there, or starting. */
	if (a->kind == DL_LA_FINISH && !t->ready)
		learner_finish(l);
	else
		queue(t, a);
}

void orders_unload(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_event reset = {.kind = DL_LE_RESET, .now = now};

	if (!t->jobs || t->job[0].kind != DL_LA_LOAD)
		return;
	t->jobs = t->begun = 0;
	t->ready = t->working = 0;
	t->start_at = INT64_MAX;
	learner_event(l, &reset);
}

/* The clock as it is now: a welcome may have set it after the order was
 * queued, or in the middle of a step. */
static unsigned long long clock_of(const struct learner *l)
{
	return dl_learn_clock(l->core);
}

/* The last save has what a model lacks: moments, tensors that are nobody
 * else's. The anchors are all that counts for the run. */
static void begin_restore(struct learner *l)
{
	dl_host_ask(l->trainer.host, "restore %s", saves_last(l));
	l->trainer.restoring = l->trainer.working = 1;
	saves_tried(l);
}

void orders_anchors(struct learner *l)
{
	struct trainer *t = &l->trainer;
	struct dl_err e;

	t->working = 1;
	for (uint32_t p = 0; p < l->layout.fragments; p++) {
		char *path = handover_file(l, "apply", p);
		int code = weights_write_anchor(&l->weights, p, path, &e);

		dl_host_say(t->host, "apply %u %s set", p, path);
		t->working++;
		free(path);
		if (code) {
			learner_fail(l, &e);
			return;
		}
	}
	dl_host_say(t->host, "clock %llu", clock_of(l));
}

void orders_load(struct learner *l)
{
	struct trainer *t = &l->trainer;
	struct dl_err e;

	if (saves_last(l)) {
		begin_restore(l);
		return;
	}
	if (weights_write_model(&l->weights, t->model, &e)) {
		learner_fail(l, &e);
		return;
	}
	dl_host_say(t->host, "load %s", t->model);
	dl_host_say(t->host, "clock %llu fresh", clock_of(l));
	t->working = 2;
}

static void begin_import(struct learner *l)
{
	dl_host_ask(l->trainer.host, "import %s", l->donated.path);
}

static void begin_copy(struct learner *l, const struct dl_learn_action *a)
{
	char *path = handover_file(l, "send", a->fragment);

	dl_host_say(l->trainer.host, "send %u %s", a->fragment, path);
	free(path);
}

/* 1 when the trainer has an order now. */
static int begin_apply(
	struct learner *l, const struct dl_learn_action *a, int64_t now)
{
	char *path = handover_file(l, "apply", a->fragment), how[32] = "set";
	struct dl_err e;
	int said = 0;

	if (weights_unread(&l->weights, a->fragment))
		handover_read(l, now);
	if (!weights_has(&l->weights, a->fragment, a->version)) {
		/* A newer one has come, and its own apply with it. */
		free(path);
		return 0;
	}
	if (a->apply == DL_APPLY_CARRY)
		strcpy(how, "add");
	if (a->apply == DL_APPLY_BLEND)
		snprintf(how, sizeof how, "blend %.9g", a->alpha);
	if (weights_write_apply(&l->weights, a, path, &e)) {
		learner_fail(l, &e);
	} else {
		dl_host_say(l->trainer.host, "apply %u %s %s", a->fragment,
			path, how);
		said = 1;
	}
	free(path);
	return said;
}

static void begin_export(struct learner *l, int64_t now)
{
	struct export_file *x = &l->serving.file;

	export_begin(x, now);
	dl_host_ask(l->trainer.host, "export %s", x->path);
}

/* 1 when it is at work now, 0 when it is done. */
static int begin(
	struct learner *l, const struct dl_learn_action *a, int64_t now)
{
	struct trainer *t = &l->trainer;

	switch (a->kind) {
	case DL_LA_LOAD:
		orders_load(l);
		return t->working > 0;
	case DL_LA_IMPORT:
		begin_import(l);
		return 1;
	case DL_LA_COPY:
		begin_copy(l, a);
		return 1;
	case DL_LA_APPLY:
		return begin_apply(l, a, now);
	case DL_LA_CLOCK:
		dl_host_say(t->host, "clock %llu", clock_of(l));
		return 1;
	case DL_LA_FINISH:
		learner_finish(l);
		return 0;
	case DL_LA_EXPORT:
		begin_export(l, now);
		return 1;
	default:
		dl_host_say(t->host, "go");
		t->ready = 0;
		return 0;
	}
}

/* That job has been done. */
static void finish(struct learner *l, size_t i)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_action a = t->job[i];

	t->jobs--;
	memmove(t->job + i, t->job + i + 1, (t->jobs - i) * sizeof *t->job);
	if (a.kind == DL_LA_LOAD)
		unlink(t->model);
	if (a.kind == DL_LA_IMPORT)
		donated_release(l);
	if (a.kind == DL_LA_COPY)
		weights_find(&l->weights, a.fragment, a.seq)->written = 1;
}

void orders_finish(struct learner *l, const struct dl_err *why)
{
	struct trainer *t = &l->trainer;

	if (t->job[0].kind == DL_LA_EXPORT)
		export_done(l, why, dl_now());
	t->begun--;
	t->working = t->begun > 0;
	finish(l, 0);
}

void orders_save(struct learner *l, int64_t now)
{
	dl_host_ask(l->trainer.host, "save %s", saves_ask(l, now));
	l->trainer.saving = 1;
}

/* Where exports will go is told before, and not when they are due. */
static void begin_telling(struct learner *l, int64_t now)
{
	const char *path = export_prepare(l, now);

	if (!path)
		return;
	dl_host_ask(l->trainer.host, "prepare %s", path);
	l->trainer.telling = 1;
}

/* Is it one order, with one answer at most? */
static int is_plain(const struct dl_learn_action *a)
{
	return a->kind == DL_LA_COPY || a->kind == DL_LA_APPLY ||
	       a->kind == DL_LA_CLOCK || a->kind == DL_LA_GO;
}

/* The trainer should not stand and wait for us between two orders. But what it
 * gives out of a fragment is read before it takes any in, and a file that it
 * reads stays as it is. */
static int may_follow(const struct trainer *t, const struct dl_learn_action *a)
{
	for (size_t i = 0; i < t->begun; i++)
		if (!is_plain(&t->job[i]) || !is_plain(a) ||
			(a->kind == DL_LA_APPLY &&
				t->job[i].fragment == a->fragment))
			return 0;
	return 1;
}

/* What has come is there to be taken in when the trainer is: to write it then
 * would keep it waiting. */
static void prepare(struct learner *l)
{
	struct dl_err e;

	for (uint32_t p = 0; p < l->layout.fragments; p++) {
		char *path;

		if (!weights_can_prepare(&l->weights, p))
			continue;
		path = handover_file(l, "apply", p);
		if (weights_prepare(&l->weights, p, path, &e))
			learner_fail(l, &e);
		free(path);
	}
}

/* Must the job wait for something else? */
static int waits(
	struct learner *l, const struct dl_learn_action *a, int64_t now)
{
	const struct trainer *t = &l->trainer;

	if (t->saving || t->telling || !may_follow(t, a))
		return 1;
	if (a->kind == DL_LA_GO && saves_due(l, now))
		orders_save(l, now);
	else if (a->kind == DL_LA_GO)
		begin_telling(l, now);
	return t->saving || t->telling ||
	       (a->kind == DL_LA_LOAD && saves_finding(l));
}

/* Orders without an answer are done at once. */
void orders_begin(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;

	while (t->ready && t->begun < t->jobs && !t->stopping) {
		struct dl_learn_action a = t->job[t->begun];

		if (waits(l, &a, now))
			break;
		if (!begin(l, &a, now))
			finish(l, t->begun);
		else if (!t->begun++ && !t->working)
			t->working = 1;
	}
	if (!t->working && !t->stopping) {
		handover_read(l, now);
		prepare(l);
	}
}
