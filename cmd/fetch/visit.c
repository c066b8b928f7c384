#include "cmd/fetch/visit.h"

static const int64_t beat = 2 * DL_SECOND, silence = 10 * DL_SECOND;

static void look_up(struct dl_errand *errand)
{
	struct visit *v = (void *)errand;
	struct dl_address a = v->address;
	unsigned count;

	dl_address_resolve(&a, v->nth, &v->address, &count, &v->why);
}

static void dial(struct visit *v)
{
	struct dl_conn_config c = {.handlers = v->handlers,
		.ctx = v->ctx,
		.control = {16 << 20, 16 << 20},
		.data = {1 << 16, DL_FETCH_BYTES},
		.queue = DL_CONN_QUEUE,
		.beat_ns = beat,
		.silence_ns = silence};
	struct dl_child child;
	int fd;

	v->session = (struct dl_handshake_config){
		v->address.own, v->address.key, ""};
	c.session = v->address.own ? &v->session : NULL;
	if (dl_address_connect(
		    &v->address, v->insecure, &fd, &child, &v->why)) {
		v->state = VISIT_OVER;
		return;
	}
	dl_conn_init(&v->conn, fd, &c, dl_now());
	dl_conn_send(&v->conn, &v->hello);
	v->state = VISIT_OPEN;
	v->opened = 1;
}

static void looked_up(struct dl_errand *errand)
{
	struct visit *v = (void *)errand;

	if (errand->dropped)
		v->state = VISIT_NONE;
	else if (v->why.code)
		v->state = VISIT_OVER;
	else
		dial(v);
}

void visit_begin(struct visit *v, struct dl_errands *errands,
	const struct dl_address *a, unsigned nth,
	const struct dl_message *hello)
{
	v->errand = (struct dl_errand){look_up, looked_up, 0, NULL};
	v->address = *a;
	v->nth = nth;
	v->hello = *hello;
	v->why.code = v->opened = 0;
	v->state = VISIT_LOOKUP;
	dl_errands_add(errands, &v->errand);
}

static void hang_up(struct visit *v)
{
	dl_conn_release(&v->conn);
	v->state = VISIT_OVER;
}

static void turn(void *ctx, int fd, short revents)
{
	struct visit *v = ctx;

	if (dl_conn_turn(&v->conn, fd, revents, dl_now(), &v->why))
		hang_up(v);
}

int visit_work(struct visit *v, int64_t now, struct dl_err *why)
{
	if (v->state == VISIT_OPEN) {
		if (dl_conn_work(&v->conn, 0, now, &v->why))
			hang_up(v);
		else
			dl_conn_watch(&v->conn, v->loop, turn, v);
	}
	if (v->state != VISIT_OVER)
		return 0;
	v->state = VISIT_NONE;
	*why = v->why;
	return why->code;
}

int64_t visit_wake(const struct visit *v)
{
	if (v->state == VISIT_OVER)
		return 0;
	return v->state == VISIT_OPEN ? dl_conn_deadline(&v->conn) : INT64_MAX;
}

void visit_end(struct visit *v)
{
	if (v->state == VISIT_OPEN)
		dl_conn_release(&v->conn);
	if (v->state != VISIT_LOOKUP)
		v->state = VISIT_NONE;
}
