/*
 * Any bytes to a connection, at once and in pieces: it hears the same and ends
 * in the same way.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "link/conn.h"

enum { LONGEST = 65536 }; /* input, less than a socket holds */

struct heard {
	uint64_t messages, records, bytes;
	int code;
	struct dl_err why;
};

static int message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)e;
	h->messages++;
	return 0;
}

static int begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *header, void **dest, struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)dest;
	(void)e;
	h->bytes += header->data_size;
	return 0;
}

static int whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *header, void *dest, struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)header;
	(void)dest;
	(void)e;
	h->records++;
	return 0;
}

static struct heard hear(const uint8_t *data, size_t n, size_t piece)
{
	static const struct dl_conn_handlers handlers = {message, begin, whole};
	struct heard h = {0};
	struct dl_conn_config cf = {
		.handlers = &handlers,
		.ctx = &h,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_CONTROL,
	};
	struct dl_conn c;
	int fd[2];
	size_t part;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	dl_conn_init(&c, fd[0], &cf, 0);
	for (; n && !h.code; data += part, n -= part) {
		part = n < piece ? n : piece;
		if (write(fd[1], data, part) != (ssize_t)part)
			abort();
		h.code = dl_conn_work(&c, POLLIN, 0, &h.why);
	}
	close(fd[1]);
	if (!h.code)
		h.code = dl_conn_work(&c, POLLIN, 0, &h.why);
	dl_conn_release(&c);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct heard once, pieces;

	if (n > LONGEST)
		return 0;
	once = hear(data, n, LONGEST);
	pieces = hear(data, n, n / 100 + 1);
	if (!once.code || once.code != pieces.code ||
		strcmp(once.why.text, pieces.why.text) != 0 ||
		once.messages != pieces.messages ||
		once.records != pieces.records || once.bytes != pieces.bytes)
		abort();
	return 0;
}
