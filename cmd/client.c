#include "cmd/client.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"

static const int64_t silence = 30 * DL_SECOND;

/* Waits until there is a connection, or why there is none. */
static int await(int fd, struct dl_err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = 0;
	socklen_t n = sizeof error;

	if (poll(&p, 1, -1) < 0)
		return dl_fail_sys(e, DL_OSERR, "poll");
	if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) && error)
		return dl_fail(e, DL_UNAVAILABLE, "%s", strerror(error));
	return 0;
}

/* Connects to the first of a name's addresses at which somebody listens. */
static int connect_any(struct client *c, const struct dl_address *a,
	enum dl_insecure allowed, int *fd, struct dl_err *e)
{
	struct dl_address one;
	unsigned count = 1;
	int code = 0;

	for (unsigned nth = 0; nth < count; nth++) {
		code = dl_address_resolve(a, nth, &one, &count, e);
		if (!code)
			code = dl_address_connect(
				&one, allowed, fd, &c->child, e);
		if (code || a->kind != DL_LINK_TCP)
			continue;
		code = await(*fd, e);
		if (!code)
			break;
		close(*fd);
		dl_at(e, "%s", dl_address_show(c->address, &one));
	}
	return code;
}

int client_open(struct client *c, const struct dl_address *a,
	enum dl_insecure allowed, const struct dl_conn_handlers *handlers,
	void *ctx, struct dl_err *e)
{
	struct dl_conn_config config = {.handlers = handlers,
		.ctx = ctx,
		.control = {16 << 20, 16 << 20},
		.data = {16 << 20, UINT64_MAX},
		.queue = DL_CONN_QUEUE,
		.silence_ns = silence};
	struct dl_handshake_config session = {a->own, a->key, ""};
	int fd, code;

	*c = (struct client){.loop = DL_LOOP_INIT};
	code = connect_any(c, a, allowed, &fd, e);
	dl_address_show(c->address, a);
	config.session = a->own ? &session : NULL;
	if (!code)
		dl_conn_init(&c->conn, fd, &config, dl_now());
	return code;
}

static void hang_up(struct client *c)
{
	dl_conn_release(&c->conn);
	dl_child_wait(&c->child);
}

void client_close(struct client *c)
{
	hang_up(c);
	dl_loop_release(&c->loop);
}

static void turn(void *ctx, int fd, short revents)
{
	struct client *c = ctx;

	(void)fd;
	c->over = dl_conn_work(&c->conn, revents, dl_now(), &c->why);
}

int client_wait(struct client *c, struct dl_err *e)
{
	int code = 0;

	while (!code && !c->over && !c->done) {
		turn(c, c->conn.main.fd, 0);
		if (c->over || c->done)
			break;
		dl_loop_set(&c->loop, c->conn.main.fd, dl_conn_events(&c->conn),
			turn, c);
		code = dl_loop_once(&c->loop, dl_conn_deadline(&c->conn), e);
	}
	if (code || c->done)
		return code;
	hang_up(c);
	*e = c->why;
	dl_child_explain(&c->child, e);
	return dl_at(e, "%s", c->address);
}

int client_refused(const struct dl_message *m, struct dl_err *e)
{
	char text[400];

	return dl_fail(e, m->code, "%s",
		dl_scrub(text, sizeof text, m->text, m->text_n));
}

int client_is_final(int code)
{
	return code == DL_USAGE || code == DL_DATA || code == DL_PROTOCOL ||
	       code == DL_NOPERM;
}
