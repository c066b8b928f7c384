#include "cmd/serve/server.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/notify.h"
#include "cmd/serve/begin.h"
#include "cmd/serve/commit.h"
#include "cmd/serve/deliver.h"
#include "cmd/serve/hear.h"
#include "cmd/serve/rights.h"
#include "cmd/serve/show.h"
#include "cmd/sync/start.h"
#include "link/signals.h"

static const int64_t accept_pause = DL_SECOND / 5;
static const int64_t leave_time = 5 * DL_SECOND;

/* The rounds' decisions, sent to the learner they are for. */
static void send_to(struct server *s, const struct dl_sync_action *a)
{
	struct peer *peer = peers_find(s, a->learner, a->instance);
	struct dl_message m = {.fragment = a->fragment,
		.step = a->step,
		.seq = a->seq,
		.taken = a->taken,
		.refusal = a->refusal,
		.scale = a->scale};

	if (!peer)
		return;
	switch (a->kind) {
	case DL_ACT_WELCOME:
		peer_send_welcome(peer, a->step);
		return;
	case DL_ACT_GLOBAL:
		/* What is merged goes to all, once it is committed. */
		if (!commits_has(s, a->fragment))
			deliver(peer, a->fragment, a->step, a->final);
		return;
	case DL_ACT_BYE:
		peer_bye(peer, DL_BYE_DONE, dl_now());
		return;
	case DL_ACT_OPEN:
		m.kind = DL_MSG_OPEN;
		hear_answer(peer);
		break;
	case DL_ACT_END:
		m.kind = DL_MSG_END;
		break;
	default:
		m.kind = DL_MSG_TAKEN;
		break;
	}
	dl_conn_send(&peer->conn, &m);
	/* Before the loop turns there may be merges to commit. */
	if (a->kind == DL_ACT_OPEN)
		dl_conn_flush(&peer->conn, dl_now());
}

void server_save_tape(struct server *s, int durably)
{
	struct dl_err e;
	int code;

	if (!s->tape)
		return;
	code = durably ? dl_tape_sync(s->tape, &e) : dl_tape_flush(s->tape, &e);
	if (code && !s->tape_lost)
		cmd_warn("%s: the tape cannot be written", e.text);
	s->tape_lost = code != 0;
}

static void merge(struct server *s, const struct dl_sync_action *a)
{
	struct dl_err e;

	if (globals_merge(&s->globals, a, &e))
		cmd_warn("fragment %u is left as it is: %s", a->fragment,
			e.text);
	commits_add(s, a->fragment);
}

/* The run is over: its model, and a last word to those who wait for it. */
static void finish_run(struct server *s)
{
	const char *output = s->options->sync.output;
	int64_t now = dl_now();
	struct dl_err e;

	notify_stopping();
	commits_finish(s);
	if (output && globals_write_model(&s->globals, output, &e))
		s->code = cmd_fail(&e);
	peers_bye(s, PEER_ENDER, DL_BYE_DONE, now);
	checkpoints_last(s);
	s->ending = 1;
	s->leave_at = now + leave_time;
	absent_wait(s, now);
}

static void act(struct server *s, const struct dl_sync_action *a)
{
	switch (a->kind) {
	case DL_ACT_RELEASE:
		pushes_drop_id(&s->globals.pushes, a->push);
		break;
	case DL_ACT_MERGE:
		merge(s, a);
		break;
	case DL_ACT_DONE:
		finish_run(s);
		break;
	default:
		send_to(s, a);
		break;
	}
}

static void feed(struct server *s, const struct dl_sync_event *ev)
{
	struct dl_sync_action a;
	int64_t wall = dl_wall();

	if (s->tape)
		sync_note(s->tape, ev, &s->globals, &s->trail, wall);
	dl_stat_at(&s->stat, ev->now, wall);
	/* Before the core has that fragment merged again. */
	if (ev->kind == DL_EV_MERGED)
		dl_stat_alike(&s->stat, ev->fragment,
			&s->globals.alike[ev->fragment]);
	dl_sync_event(s->core, ev);
	while (dl_sync_next(s->core, &a)) {
		dl_trail_add(&s->trail, &a);
		dl_stat_act(&s->stat, ev, &a);
		act(s, &a);
	}
	dl_stat_follow(&s->stat, ev);
}

void server_event(struct server *s, struct dl_sync_event *ev)
{
	feed(s, ev);
	commits_work(s, ev->now);
}

/* Not the end of the run: learners train on, and the next syncer goes on from
 * the store. */
static void on_terminate(struct server *s)
{
	int64_t now = dl_now();

	notify_stopping();
	if (s->stopped)
		checkpoints_give_up(s);
	if (s->ending) {
		s->stopped = 1;
		s->leave_at = now;
		return;
	}
	commits_finish(s);
	peers_bye(s, PEER_LEARNER, DL_BYE_RESTARTING, now);
	peers_bye(s, PEER_WAITING, DL_BYE_RESTARTING, now);
	peers_bye(s, PEER_ENDER, DL_BYE_RESTARTING, now);
	peers_bye(s, PEER_CHECKPOINT, DL_BYE_RESTARTING, now);
	peers_drop_strangers(s);
	checkpoints_last(s);
	s->ending = s->stopped = 1;
	s->leave_at = now + leave_time;
}

/* Files that an administrator has moved or changed. */
static void on_hangup(struct server *s)
{
	struct dl_err e;

	notify_reloading();
	if (s->tape && dl_tape_reopen(s->tape, &e))
		cmd_warn("%s: the tape is not opened again", e.text);
	rights_reread(s, dl_now());
	notify_ready();
}

static void on_signal(void *ctx, int fd, short revents)
{
	struct server *s = ctx;
	int signal;

	(void)fd;
	(void)revents;
	while ((signal = dl_signals_next())) {
		if (signal == SIGTERM || signal == SIGINT)
			on_terminate(s);
		if (signal == SIGUSR1)
			server_show(s, 1);
		if (signal == SIGHUP)
			on_hangup(s);
	}
}

static void on_listener(void *ctx, int fd, short revents)
{
	struct server *s = ctx;
	int64_t now = dl_now();

	(void)revents;
	if (peers_accept(s, fd, now))
		s->accept_at = now + accept_pause;
}

/* Looks at the listeners, unless those that wait there must wait on: it would
 * be all that the loop does. When to look again. */
static int64_t watch_listeners(struct server *s, int64_t now)
{
	int64_t at = s->stopped ? INT64_MAX : s->accept_at;
	short events = now < at ? 0 : POLLIN;

	for (size_t i = 0; i < s->options->listens; i++)
		dl_loop_set(&s->loop, s->listener[i], events, on_listener, s);
	return events ? INT64_MAX : at;
}

/* When the core wants to hear of the time. */
static int64_t core_wake(const struct server *s)
{
	return s->stopped ? INT64_MAX : dl_sync_wake(s->core);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When an ending syncer leaves, if nobody comes or goes before. Who has asked
 * how to join is about to come, and is to hear that the run is over. */
static int64_t when_left(const struct server *s)
{
	int64_t at = s->peer ? s->leave_at : least(s->expects, s->leave_at);

	if (s->stopped)
		return s->peer ? s->leave_at : 0;
	return s->absent.n && at < s->absent.until ? s->absent.until : at;
}

static int turn(struct server *s, struct dl_err *e)
{
	struct dl_sync_event time = {
		.kind = DL_EV_TIME, .now = dl_now(), .loss = NAN};
	int64_t until;
	int left;

	notify_turn(time.now);
	if (time.now >= core_wake(s))
		server_event(s, &time);
	commits_work(s, time.now);
	rights_work(s, time.now);
	server_save_tape(s, 0);
	peers_work(s, time.now);
	checkpoints_work(s, time.now);
	server_show(s, 0);
	left = s->ending && time.now >= when_left(s);
	if (left && !checkpoints_busy(s))
		s->over = 1;
	if (s->over)
		return 0;
	until = least(peers_wake(s), core_wake(s));
	until = least(until, commits_wake(s));
	until = least(until, rights_wake(s, time.now));
	until = least(until, watch_listeners(s, time.now));
	until = least(until, checkpoints_wake(s));
	until = least(until, notify_wake());
	if (s->ending && !left)
		until = least(until, when_left(s));
	return dl_loop_once(&s->loop, until, e);
}

/* Before anything is there that would have to be removed again. */
static int catch_signals(struct server *s, struct dl_err *e)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	int fd, code = dl_signals_open(
			caught, sizeof caught / sizeof *caught, &fd, e);

	if (!code)
		dl_loop_set(&s->loop, fd, POLLIN, on_signal, s);
	return code;
}

int server_run(const struct serve_options *o)
{
	struct server s = {.options = o,
		.loop = DL_LOOP_INIT,
		.status = CMD_STATUS_INIT,
		.rate = {.bytes = o->data.rate},
		.shown_at = dl_now()};
	struct dl_err e;
	int code;

	for (size_t i = 0; i < o->listens; i++)
		s.listener[i] = -1;
	notify_begin();
	gate_begin(&s.gate);
	code = catch_signals(&s, &e);
	if (!code)
		code = server_begin(&s, &e);
	if (!code)
		notify_ready();
	while (!code && !s.over)
		code = turn(&s, &e);
	if (code)
		s.code = cmd_fail(&e);
	server_show_end(&s);
	server_end(&s);
	return s.code;
}
