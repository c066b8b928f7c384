#include "cmd/learn/trainer.h"

#include <stdlib.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/background.h"
#include "cmd/learn/handover.h"
#include "cmd/learn/learner.h"
#include "cmd/learn/orders.h"

enum { HOPELESS = 3 }; /* deaths in a row of a trainer that never stepped */

static const int64_t pause_min = DL_SECOND / 4, pause_max = 60 * DL_SECOND;

/* The trainer is not in the background with its learner. */
static int start(struct trainer *t, struct dl_err *e)
{
	int code;

	if (t->background)
		background_leave();
	code = dl_host_start(t->host, e);
	t->background = background_enter();
	return code;
}

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
	return t->host ? start(t, e) : e->code;
}

void trainer_release(struct learner *l)
{
	struct trainer *t = &l->trainer;

	dl_host_free(t->host);
	environment_free(t->variable);
	free(t->model);
	free(t->job);
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
	handover_read(l, now);
	handover_lose(l, now);
	t->jobs = t->begun = 0;
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
	t->jobs = t->begun = 0;
	learner_event(l, &reset);
}

/* Orders are answered one after the other; why: the trainer refused. */
static void on_answer(struct learner *l, const struct dl_err *why)
{
	struct trainer *t = &l->trainer;

	if (t->restoring) {
		t->restoring = t->working = 0;
		if (why) {
			saves_distrust(l, why->text);
			orders_load(l);
		} else {
			orders_anchors(l);
		}
	} else if (t->working && why && t->job[0].kind == DL_LA_IMPORT) {
		on_refusal(l, why);
	} else if (t->working) {
		if (!--t->working)
			orders_finish(l, why);
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
	if (!start(t, &e))
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
		orders_begin(l, now);
	}
	orders_begin(l, now);
}

void trainer_stop(struct learner *l, int64_t now)
{
	struct trainer *t = &l->trainer;

	if (!t->host || t->stopping)
		return;
	t->stopping = 1;
	t->start_at = INT64_MAX;
	if (saves_due(l, now))
		orders_save(l, now);
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
