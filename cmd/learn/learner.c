#include "cmd/learn/learner.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/apply.h"
#include "cmd/learn/identity.h"
#include "cmd/learn/orders.h"
#include "cmd/learn/show.h"
#include "cmd/notify.h"
#include "link/signals.h"

static const int64_t step_every = DL_SECOND / 10;

static int make_core(
	struct learner *l, const struct dl_message *m, struct dl_err *e)
{
	const struct learn_options *o = l->options;
	struct dl_learn_config c = {
		.schedule = {l->layout.fragments, m->h},
		.tau = m->tau,
		.wait = o->wait >= 0 ? o->wait : m->wait,
		.syncers = 1,
		.step_every = step_every,
	};
	const char *apply = o->apply ? o->apply : m->apply;

	if (learn_parse_apply(apply, &c.apply, &c.alpha))
		return dl_fail(e, DL_PROTOCOL, "unknown way to apply");
	l->weights.apply = c.apply;
	l->core = dl_learn_new(&c);
	return 0;
}

int learner_begin(
	struct learner *l, const struct dl_message *m, struct dl_err *e)
{
	uint64_t bytes = 0;
	int code = dl_layout_parse(&l->layout, m->text, m->text_n, e);

	if (code)
		return dl_at(e, "layout");
	if (m->fragments != l->layout.fragments || !m->h ||
		!dl_name_ok(m->run, strlen(m->run)))
		return dl_fail(e, DL_PROTOCOL, "welcome contradicts itself");
	strcpy(l->run, m->run);
	l->epoch = m->epoch;
	code = identity_take(l, m, e);
	if (code)
		return code;
	for (uint32_t p = 0; p < l->layout.fragments; p++)
		bytes += l->layout.fragment[p].elements * sizeof(float);
	/* The model when it is loaded, two files a fragment, small ones; a
	 * state to serve. */
	bytes = (3 + saves_models(l->options)) * bytes + (4 << 20);
	if (l->options->serves)
		bytes += export_size(l);
	code = dl_scratch_open(&l->scratch, l->options->scratch, bytes, e);
	if (code)
		return code;
	weights_init(&l->weights, &l->layout, &l->scratch, l->options->push);
	code = dl_coded_check(&l->layout, &l->weights.quant, e);
	if (!code)
		code = make_core(l, m, e);
	if (!code)
		code = trainer_begin(l, e);
	if (!code)
		saves_begin(l);
	if (!code && l->options->serves)
		export_expect(l);
	return code ? code : donated_use(l, e);
}

static void send_step(struct learner *l, const struct dl_learn_action *a)
{
	struct dl_message m = {.kind = DL_MSG_STEP,
		.clock = a->clock,
		.steps = a->steps,
		.tokens = a->tokens,
		.loss = a->loss};

	uplink_send(l, &m);
}

static void send_applied(struct learner *l, const struct dl_learn_action *a)
{
	struct dl_message m = {.kind = DL_MSG_APPLIED,
		.fragment = a->fragment,
		.version = a->version};

	uplink_send(l, &m);
}

static void send_want(struct learner *l, const struct dl_learn_action *a)
{
	struct dl_message m = {.kind = DL_MSG_WANT, .fragment = a->fragment};

	uplink_send(l, &m);
}

static void settle(struct learner *l, const struct dl_learn_action *a)
{
	struct push *push = weights_find(&l->weights, a->fragment, a->seq);

	if (!push)
		return;
	push->settled = 1;
	/* One that the trainer is still writing moves the anchor first. */
	if (push->data)
		weights_drop(&l->weights, push);
}

static void resend(struct learner *l, const struct dl_learn_action *a)
{
	struct push *push = weights_find(&l->weights, a->fragment, a->seq);

	if (!push)
		return;
	push->what.step = a->step;
	push->what.base = dl_version_base(push->what.base, a->version);
	if (push->data)
		uplink_push(l, push);
}

static void act(struct learner *l, const struct dl_learn_action *a)
{
	/* 0 is said by who leaves. */
	struct dl_message drained = {
		.kind = DL_MSG_END, .step = a->clock ? a->clock : 1};

	switch (a->kind) {
	case DL_LA_LOAD:
	case DL_LA_IMPORT:
	case DL_LA_COPY:
	case DL_LA_APPLY:
	case DL_LA_CLOCK:
	case DL_LA_EXPORT:
	case DL_LA_GO:
	case DL_LA_FINISH:
		orders_take(l, a);
		break;
	case DL_LA_WANT:
		send_want(l, a);
		break;
	case DL_LA_STEP:
		send_step(l, a);
		break;
	case DL_LA_APPLIED:
		send_applied(l, a);
		break;
	case DL_LA_RESEND:
		resend(l, a);
		break;
	case DL_LA_RELEASE:
		settle(l, a);
		break;
	case DL_LA_DRAINED:
		uplink_send(l, &drained);
		break;
	}
}

void learner_event(struct learner *l, struct dl_learn_event *ev)
{
	struct dl_learn_action a;

	dl_learn_event(l->core, ev);
	while (dl_learn_next(l->core, &a))
		act(l, &a);
}

void learner_finish(struct learner *l)
{
	int64_t now = dl_now();

	notify_stopping();
	l->finishing = 1;
	trainer_stop(l, now);
	uplink_part(l, now);
}

void learner_fail(struct learner *l, const struct dl_err *why)
{
	if (!l->code)
		l->code = cmd_fail(why);
	learner_finish(l);
}

static void on_terminate(struct learner *l)
{
	notify_stopping();
	drain_ask(l, dl_now());
}

/* When it is too long ago that a syncer was there. */
static int64_t gives_up_at(const struct learner *l)
{
	const struct newcomer *n = l->donated.newcomer;
	int64_t away_at = n ? n->away_at : l->uplink.away_at;

	if (!l->options->give_up_ns || away_at == INT64_MAX || l->finishing ||
		drain_asked(l))
		return INT64_MAX;
	return away_at + l->options->give_up_ns;
}

/* The run may be over, and then nobody is left to say so. */
static void give_up(struct learner *l)
{
	char time[DL_HUMAN];
	struct dl_err e;

	dl_fail(&e, DL_UNAVAILABLE, "no syncer for %s: gives up",
		dl_human_duration(time, l->options->give_up_ns));
	if (!l->core) {
		learner_fail(l, &e);
		return;
	}
	cmd_warn("%s", e.text);
	on_terminate(l);
}

/* There is nothing to read again; a manager waits to hear that it is done. */
static void on_hangup(void)
{
	notify_reloading();
	notify_ready();
}

static void on_signal(void *ctx, int fd, short revents)
{
	struct learner *l = ctx;
	int signal;

	(void)fd;
	(void)revents;
	while ((signal = dl_signals_next())) {
		if (signal == SIGTERM || signal == SIGINT)
			on_terminate(l);
		if (signal == SIGHUP)
			on_hangup();
		if (signal == SIGUSR1)
			learner_show(l, 1);
	}
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Until there is a peer's state, or none to be had, the syncer waits. */
static void work(struct learner *l, int64_t now)
{
	if (donated_work(l, now))
		return;
	uplink_work(l, now);
	trainer_work(l, now);
	serving_work(l, now);
	uplink_work(l, now); /* what the trainer's step has led to */
}

static int64_t wake(const struct learner *l, int64_t now)
{
	if (l->donated.newcomer)
		return donated_wake(l);
	return least(least(uplink_wake(l), trainer_wake(l)),
		serving_wake(l, now));
}

static int turn(struct learner *l, struct dl_err *e)
{
	int64_t now = dl_now(), until = INT64_MAX;

	notify_turn(now);
	work(l, now);
	if (now >= gives_up_at(l))
		give_up(l);
	drain_work(l, now);
	learner_show(l, 0);
	if (l->finishing && trainer_stopped(l) && uplink_closed(l) &&
		saves_idle(l))
		l->over = 1;
	if (l->over)
		return 0;
	until = least(least(wake(l, now), drain_wake(l)), notify_wake());
	until = least(until, gives_up_at(l));
	return dl_loop_once(&l->loop, until, e);
}

static int loop(struct learner *l, struct dl_err *e)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD};
	int fd, code = dl_signals_open(
			caught, sizeof caught / sizeof *caught, &fd, e);

	if (code)
		return code;
	dl_loop_set(&l->loop, fd, POLLIN, on_signal, l);
	notify_ready();
	while (!code && !l->over)
		code = turn(l, e);
	return code;
}

int learner_run(const struct learn_options *o)
{
	struct learner l = {.options = o,
		.loss = NAN,
		.loop = DL_LOOP_INIT,
		.scratch = DL_SCRATCH_INIT,
		.donated = DONATED_INIT,
		.saves = SAVES_INIT,
		.status = CMD_STATUS_INIT,
		.shown_at = dl_now(),
		.drain = DRAIN_INIT};
	struct dl_err e;

	notify_begin();
	randombytes_buf(&l.instance, sizeof l.instance);
	identity_begin(&l);
	uplink_init(&l, o->address.kind);
	if (serving_begin(&l, &e) || donated_begin(&l, &e) || loop(&l, &e))
		l.code = cmd_fail(&e);
	drain_report(&l);
	learner_show_end(&l);
	donated_release(&l);
	serving_release(&l);
	uplink_release(&l);
	trainer_release(&l);
	saves_release(&l);
	weights_release(&l.weights);
	dl_learn_free(l.core);
	dl_layout_release(&l.layout);
	dl_scratch_remove(&l.scratch);
	dl_loop_release(&l.loop);
	return l.code;
}
