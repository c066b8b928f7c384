#include "cmd/learn/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

enum { HOPELESS = 3 }; /* deaths in a row of a trainer that never stepped */

static const int64_t pause_min = DL_SECOND / 4, pause_max = 60 * DL_SECOND;

int trainer_begin(struct learner *l, struct dl_err *e)
{
	struct trainer *t = &l->trainer;
	char *layout = dl_scratch_file(&l->scratch, "layout.tsv");
	struct dl_host_config c = {&l->loop, l->options->command, t->environ,
		l->scratch.path, l->options->stop_ns, l->options->silence_ns};
	int code = environment_layout(&l->layout, layout, e);

	environment_set(t->variable, t->environ,
		&(struct environment){
			l->name, l->slot, l->options->seed, l->run, layout});
	free(layout);
	t->model = dl_scratch_file(&l->scratch, "model.safetensors");
	t->start_at = INT64_MAX;
	if (code)
		return code;
	t->host = dl_host_new(&c, e);
	return t->host ? dl_host_start(t->host, e) : e->code;
}

void trainer_release(struct learner *l)
{
	struct trainer *t = &l->trainer;

	dl_host_free(t->host);
	environment_free(t->variable);
	free(t->model);
	free(t->job);
}

static void queue(struct trainer *t, const struct dl_learn_action *a)
{
	if (t->jobs == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 64;
		t->job = dl_resize(t->job, t->cap, sizeof *t->job);
	}
	t->job[t->jobs++] = *a;
}

void trainer_do(struct learner *l, const struct dl_learn_action *a)
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

void trainer_unload(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_event reset = {.kind = DL_LE_RESET, .now = now};

	if (!t->jobs || t->job[0].kind != DL_LA_LOAD)
		return;
	t->jobs = 0;
	t->ready = t->working = 0;
	t->start_at = INT64_MAX;
	learner_event(l, &reset);
}

static char *file_of(const struct learner *l, const char *what, uint32_t p)
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

/* Hands on the pushes that the trainer has written out. Done while it trains,
 * or before an apply moves the same anchor. */
static void read_pushes(struct learner *l, int64_t now)
{
	struct push *push;
	struct dl_err e;

	while ((push = next_written(l))) {
		char *path = file_of(l, "send", push->what.fragment);

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

/* What a trainer that died had not handed over never will be. */
static void lose_pushes(struct learner *l, int64_t now)
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

static void set_anchors(struct learner *l)
{
	struct trainer *t = &l->trainer;
	struct dl_err e;

	t->working = 1;
	for (uint32_t p = 0; p < l->layout.fragments; p++) {
		char *path = file_of(l, "apply", p);
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

static void begin_load(struct learner *l)
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
	l->trainer.working = 1;
}

static void begin_copy(struct learner *l, const struct dl_learn_action *a)
{
	char *path = file_of(l, "send", a->fragment);

	dl_host_say(l->trainer.host, "send %u %s", a->fragment, path);
	l->trainer.working = 1;
	free(path);
}

static void begin_apply(
	struct learner *l, const struct dl_learn_action *a, int64_t now)
{
	char *path = file_of(l, "apply", a->fragment), how[32] = "set";
	struct dl_err e;

	read_pushes(l, now);
	if (!weights_has(&l->weights, a->fragment, a->version)) {
		/* A newer one has come, and its own apply with it. */
		free(path);
		return;
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
		l->trainer.working = 1;
	}
	free(path);
}

static void begin_export(struct learner *l, int64_t now)
{
	struct export_file *x = &l->serving.file;

	export_begin(x, now);
	dl_host_ask(l->trainer.host, "export %s", x->path);
	l->trainer.working = 1;
}

static void begin(
	struct learner *l, const struct dl_learn_action *a, int64_t now)
{
	struct trainer *t = &l->trainer;

	switch (a->kind) {
	case DL_LA_LOAD:
		begin_load(l);
		break;
	case DL_LA_IMPORT:
		begin_import(l);
		break;
	case DL_LA_COPY:
		begin_copy(l, a);
		break;
	case DL_LA_APPLY:
		begin_apply(l, a, now);
		break;
	case DL_LA_CLOCK:
		dl_host_say(t->host, "clock %llu", clock_of(l));
		t->working = 1;
		break;
	case DL_LA_FINISH:
		learner_finish(l);
		break;
	case DL_LA_EXPORT:
		begin_export(l, now);
		break;
	default:
		dl_host_say(t->host, "go");
		t->ready = 0;
		break;
	}
}

/* The first job has been done. */
static void finish(struct learner *l)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_action a = t->job[0];

	t->jobs--;
	memmove(t->job, t->job + 1, t->jobs * sizeof *t->job);
	if (a.kind == DL_LA_LOAD)
		unlink(t->model);
	if (a.kind == DL_LA_IMPORT)
		donated_release(l);
	if (a.kind == DL_LA_COPY)
		weights_find(&l->weights, a.fragment, a.seq)->written = 1;
}

static void begin_save(struct learner *l, int64_t now)
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

/* Must the job wait for something else? */
static int waits(
	struct learner *l, const struct dl_learn_action *a, int64_t now)
{
	const struct trainer *t = &l->trainer;

	if (t->saving || t->telling)
		return 1;
	if (a->kind == DL_LA_GO && saves_due(l, now))
		begin_save(l, now);
	else if (a->kind == DL_LA_GO)
		begin_telling(l, now);
	return t->saving || t->telling ||
	       (a->kind == DL_LA_LOAD && saves_finding(l));
}

/* Orders without an answer are done at once; the next that has one waits. */
static void begin_jobs(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;

	while (t->ready && !t->working && t->jobs && !t->stopping) {
		struct dl_learn_action a = t->job[0];

		if (waits(l, &a, now))
			break;
		begin(l, &a, now);
		if (!t->working)
			finish(l);
	}
	if (!t->working && !t->stopping)
		read_pushes(l, now);
}

static void on_step(
	struct learner *l, const struct dl_host_event *ev, int64_t now)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_event step = {.kind = DL_LE_STEP,
		.now = now,
		.tokens = ev->tokens,
		.loss = ev->loss};

	t->ready = 1;
	t->stepped = 1;
	saves_step(l);
	l->loss = ev->loss;
	learner_event(l, &step);
}

static int64_t pause_of(unsigned deaths)
{
	int64_t pause = pause_min;

	while (--deaths && pause < pause_max)
		pause *= 2;
	return pause < pause_max ? pause : pause_max;
}

static void on_death(
	struct learner *l, const struct dl_host_event *ev, int64_t now)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_event reset = {.kind = DL_LE_RESET, .now = now};

	t->ready = t->working = 0;
	t->saving = t->telling = t->restoring = 0;
	saves_death(l, &ev->err);
	if (ev->wanted && ev->err.code)
		cmd_warn("%s", ev->err.text);
	if (ev->wanted || t->stopping)
		return;
	read_pushes(l, now);
	lose_pushes(l, now);
	t->jobs = 0;
	export_lost(&l->serving.file);
	if (++t->deaths >= HOPELESS && !t->stepped) {
		learner_fail(l, &ev->err);
		return;
	}
	if (drain_asked(l)) {
		cmd_warn("%s", ev->err.text);
	} else {
		t->start_at = now + pause_of(t->deaths);
		cmd_warn("%s: starting it again", ev->err.text);
	}
	donated_release(l);
	learner_event(l, &reset);
}

/* The trainer cannot go on from the state of a peer. */
static void on_refusal(struct learner *l, const struct dl_err *why)
{
	struct trainer *t = &l->trainer;
	struct dl_learn_event reset = {.kind = DL_LE_RESET, .now = dl_now()};

	cmd_warn("%s: begins with the syncer's values", why->text);
	donated_release(l);
	t->working = 0;
	t->jobs = 0;
	learner_event(l, &reset);
}

static void finish_job(struct learner *l, const struct dl_err *why)
{
	if (l->trainer.job[0].kind == DL_LA_EXPORT)
		export_done(l, why, dl_now());
	finish(l);
}

/* Orders are answered one after the other; why: the trainer refused. */
static void on_answer(struct learner *l, const struct dl_err *why)
{
	struct trainer *t = &l->trainer;

	if (t->restoring) {
		t->restoring = t->working = 0;
		if (why) {
			saves_distrust(l, why->text);
			begin_load(l);
		} else {
			set_anchors(l);
		}
	} else if (t->working && why && t->job[0].kind == DL_LA_IMPORT) {
		on_refusal(l, why);
	} else if (t->working) {
		if (!--t->working)
			finish_job(l, why);
	} else if (t->saving) {
		t->saving = 0;
		saves_done(l, why);
	} else if (t->telling) {
		t->telling = 0;
	}
}

static void restart(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;
	struct dl_err e;

	if (now < t->start_at)
		return;
	t->start_at = INT64_MAX;
	if (!dl_host_start(t->host, &e))
		return;
	cmd_warn("%s", e.text);
	t->start_at = now + pause_of(++t->deaths);
}

void trainer_work(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;
	struct dl_host_event ev;

	if (!t->host)
		return;
	restart(l, now);
	while (dl_host_next(t->host, now, &ev)) {
		switch (ev.kind) {
		case DL_HOST_READY:
			t->ready = 1;
			break;
		case DL_HOST_STEP:
			on_step(l, &ev, now);
			break;
		case DL_HOST_ANSWER:
			on_answer(l, NULL);
			break;
		case DL_HOST_REFUSED:
			on_answer(l, &ev.err);
			break;
		case DL_HOST_DIED:
			on_death(l, &ev, now);
			break;
		}
		begin_jobs(l, now);
	}
	begin_jobs(l, now);
}

void trainer_stop(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;

	if (!t->host || t->stopping)
		return;
	t->stopping = 1;
	t->start_at = INT64_MAX;
	if (saves_due(l, now))
		begin_save(l, now);
	dl_host_stop(t->host, now);
}

int trainer_stopped(const struct learner *l)
{
	return !l->trainer.host || !dl_host_running(l->trainer.host);
}

int64_t trainer_wake(const struct learner *l)
{
	const struct trainer *t = &l->trainer;
	int64_t wake = t->host ? dl_host_wake(t->host) : INT64_MAX;

	return t->host && t->start_at < wake ? t->start_at : wake;
}
