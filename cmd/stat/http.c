#include "cmd/stat/http.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"

static const int64_t patience = 2 * DL_SECOND; /* of a request, all in all */

enum { REQUEST = 8192 };

struct answer {
	const char *status, *type;
	struct dl_buf body;
};

/* Waits for fd until the deadline; 0 when it is over. */
static int await(int fd, short events, int64_t deadline)
{
	int64_t left = (deadline - dl_now()) / 1000000;
	struct pollfd p = {.fd = fd, .events = events};

	return left > 0 && poll(&p, 1, (int)left) > 0;
}

/* The request with all its lines; 0 when it does not come, or is too long. */
static int take_request(int fd, char text[REQUEST + 1], int64_t deadline)
{
	size_t n = 0;

	while (n < REQUEST && await(fd, POLLIN, deadline)) {
		ssize_t got = read(fd, text + n, REQUEST - n);

		if (got <= 0)
			return 0;
		n += (size_t)got;
		text[n] = '\0';
		if (memchr(text, '\0', n))
			return 0;
		if (strstr(text, "\r\n\r\n") || strstr(text, "\n\n"))
			return 1;
	}
	return 0;
}

static void send_all(
	int fd, const unsigned char *data, size_t n, int64_t deadline)
{
	while (n && await(fd, POLLOUT, deadline)) {
		ssize_t sent = send(fd, data, n, MSG_NOSIGNAL);

		if (sent < 0)
			return;
		data += sent;
		n -= (size_t)sent;
	}
}

static void answer(int fd, const struct answer *a, int64_t deadline)
{
	struct dl_buf out = DL_BUF_INIT;

	dl_buf_printf(&out,
		"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\n",
		a->status, a->type, a->body.len);
	dl_buf_add(&out, a->body.data, a->body.len);
	send_all(fd, out.data, out.len, deadline);
	dl_buf_free(&out);
}

/* Does the request ask for the page, by HTTP? */
static const char *refusal(const char *text)
{
	static const char get[] = "GET ", page[] = "/metrics";
	size_t n = strlen(page);

	if (strncmp(text, get, strlen(get)) != 0)
		return "405 Method Not Allowed";
	text += strlen(get);
	if (strncmp(text, page, n) != 0 || !strchr(" ?", text[n]))
		return "404 Not Found";
	return strstr(text, " HTTP/1.") ? NULL : "400 Bad Request";
}

static void serve(int fd,
	int (*put)(void *ctx, struct dl_buf *out, struct dl_err *e), void *ctx)
{
	struct answer a = {.type = "text/plain; charset=utf-8"};
	char text[REQUEST + 1];
	struct dl_err e;

	if (!take_request(fd, text, dl_now() + patience))
		return;
	a.status = refusal(text);
	if (!a.status && put(ctx, &a.body, &e)) {
		cmd_warn("%s", e.text);
		dl_buf_clear(&a.body);
		a.status = "503 Service Unavailable";
	}
	if (!a.status) {
		a.status = "200 OK";
		a.type = "text/plain; version=0.0.4; charset=utf-8";
	}
	answer(fd, &a, dl_now() + patience);
	dl_buf_free(&a.body);
}

int http_serve(struct dl_address *a,
	int (*put)(void *ctx, struct dl_buf *out, struct dl_err *e), void *ctx,
	struct dl_err *e)
{
	char address[DL_ADDRESS_MAX];
	struct pollfd p = {.events = POLLIN};
	int fd, code = dl_address_listen(a, DL_INSECURE_LOOPBACK, &p.fd, e);

	if (code == DL_USAGE)
		return dl_fail(e, code, "only at this machine's loopback, such "
					"as 127.0.0.1");
	if (code)
		return code;
	cmd_note("listens at %s", dl_address_show(address, a));
	while (!code) {
		poll(&p, 1, -1);
		code = dl_address_accept(p.fd, &fd, e);
		if (code || fd < 0)
			continue;
		serve(fd, put, ctx);
		close(fd);
	}
	dl_address_unlisten(a, p.fd);
	return code;
}
