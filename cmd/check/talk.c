#include "cmd/check/talk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/fragment.h"
#include "train/line.h"

/* The next event: c->died has the reason when it is the last. */
static void hear(struct check *c, struct dl_host_event *ev)
{
	struct dl_err e;

	while (!dl_host_next(c->host, dl_now(), ev)) {
		if (dl_loop_once(&c->loop, dl_host_wake(c->host), &e))
			cmd_die(e.code, "%s", e.text);
	}
	if (ev->kind == DL_HOST_DIED)
		c->died = ev->err;
}

int talk_begin(struct check *c, struct dl_err *e)
{
	struct dl_host_event ev;

	c->died.code = 0;
	if (dl_host_start(c->host, e))
		return FINDING_WRONG;
	hear(c, &ev);
	if (ev.kind == DL_HOST_READY)
		return 0;
	*e = c->died;
	return FINDING_WRONG;
}

void talk_end(struct check *c)
{
	struct dl_host_event ev = {.kind = DL_HOST_READY};
	struct dl_err enough;

	dl_fail(&enough, DL_NO, "trainer: is no longer wanted");
	if (dl_host_running(c->host))
		dl_host_fail(c->host, dl_now(), &enough);
	while (dl_host_running(c->host) && ev.kind != DL_HOST_DIED)
		hear(c, &ev);
}

/* Says one line and waits for what it leads to. */
static int exchange(struct check *c, const char *line, struct dl_host_event *ev,
	struct dl_err *e)
{
	if (dl_host_running(c->host)) {
		dl_host_ask(c->host, "%s", line);
		hear(c, ev);
	}
	if (dl_host_running(c->host))
		return 0;
	dl_fail(e, DL_NO, "%s: %s", line, c->died.text);
	return FINDING_WRONG;
}

static int vask(struct check *c, struct dl_err *e, const char *fmt, va_list ap)
{
	char line[DL_LINE_MAX];
	struct dl_host_event ev;

	vsnprintf(line, sizeof line, fmt, ap);
	if (exchange(c, line, &ev, e))
		return FINDING_WRONG;
	if (ev.kind != DL_HOST_REFUSED)
		return 0;
	*e = ev.err;
	return FINDING_REFUSED;
}

int talk_ask(struct check *c, struct dl_err *e, const char *fmt, ...)
{
	va_list ap;
	int found;

	va_start(ap, fmt);
	found = vask(c, e, fmt, ap);
	va_end(ap);
	return found;
}

int talk_order(struct check *c, struct dl_err *e, const char *fmt, ...)
{
	va_list ap;
	int found;

	va_start(ap, fmt);
	found = vask(c, e, fmt, ap);
	va_end(ap);
	if (found == FINDING_REFUSED)
		dl_at(e, "refuses %.*s", (int)strcspn(fmt, " "), fmt);
	return found ? FINDING_WRONG : 0;
}

int talk_step(struct check *c, struct dl_err *e)
{
	struct dl_host_event ev;
	int64_t began = dl_now();

	if (exchange(c, "go", &ev, e))
		return FINDING_WRONG;
	c->step_ns = dl_now() - began;
	c->tokens = ev.tokens;
	c->loss = ev.loss;
	return 0;
}

char *talk_file(const struct check *c, const char *what, uint32_t p)
{
	return dl_sprintf("%s/%s.%u", c->scratch.path, what, p);
}

int talk_load(struct check *c, uint64_t clock, struct dl_err *e)
{
	int found = talk_order(c, e, "load %s", c->path);

	return found ? found
		     : talk_order(c, e, "clock %llu fresh",
			       (unsigned long long)clock);
}

int talk_load_at_once(struct check *c, struct dl_err *e)
{
	enum { ORDERS = 4 };
	char *path = talk_file(c, "send", 0);
	struct dl_host_event ev;
	int answers = 0;

	dl_host_say(c->host, "load %s", c->path);
	dl_host_say(c->host, "clock 0 fresh");
	dl_host_say(c->host, "send 0 %s", path);
	dl_host_say(c->host, "go");
	free(path);
	do {
		hear(c, &ev);
		answers += ev.kind == DL_HOST_ANSWER || ev.kind == DL_HOST_STEP;
	} while (answers < ORDERS && ev.kind != DL_HOST_DIED);
	if (answers == ORDERS)
		return talk_load(c, 0, e);
	dl_fail(e, DL_NO, "answers %d of %d orders that come together: %s",
		answers, ORDERS, c->died.text);
	return FINDING_WRONG;
}

static int get(struct check *c, uint32_t p, struct dl_err *e)
{
	char *path = talk_file(c, "send", p);
	int found = talk_order(c, e, "send %u %s", p, path);

	if (!found && fragment_read(&c->layout, p, c->got[p], path, e))
		found = FINDING_WRONG;
	free(path);
	return found;
}

int talk_get(struct check *c, struct dl_err *e)
{
	int found = 0;

	for (uint32_t p = 0; p < c->layout.fragments && !found; p++)
		found = get(c, p, e);
	return found;
}

int talk_apply(struct check *c, uint32_t p, float **v, const char *how,
	struct dl_err *e)
{
	char *path = talk_file(c, "apply", p);
	int found;

	if (fragment_write(&c->layout, p, v[p], NULL, path, e))
		cmd_die(e->code, "%s", e->text);
	found = talk_order(c, e, "apply %u %s %s", p, path, how);
	free(path);
	return found;
}

int talk_apply_all(
	struct check *c, float **v, const char *how, struct dl_err *e)
{
	int found = 0;

	for (uint32_t p = 0; p < c->layout.fragments && !found; p++)
		found = talk_apply(c, p, v, how, e);
	return found;
}

int talk_stop(struct check *c, int hang_up, struct dl_err *e)
{
	struct dl_host_event ev;
	int answered = 0;

	if (hang_up)
		dl_host_hang_up(c->host, dl_now());
	else
		dl_host_stop(c->host, dl_now());
	do {
		hear(c, &ev);
		answered |= ev.kind == DL_HOST_ANSWER;
	} while (ev.kind != DL_HOST_DIED);
	if (c->died.code)
		*e = c->died;
	else if (!answered && !hang_up)
		dl_fail(e, DL_NO, "exits without an answer");
	else
		return 0;
	return FINDING_WRONG;
}
