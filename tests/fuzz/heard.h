/*
 * What a connection hears, counted, and a socket to say it through.
 */
#ifndef TESTS_FUZZ_HEARD_H
#define TESTS_FUZZ_HEARD_H

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/conn.h"

struct heard {
	uint64_t messages, records, bytes;
	int code;
	struct dl_err why;
};

static inline int heard_message(void *ctx, struct dl_conn *c,
	const struct dl_message *m, struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)e;
	h->messages++;
	return 0;
}

static inline int heard_begin(void *ctx, struct dl_conn *c,
	const struct dl_message *m, const struct dl_header *header, void **dest,
	struct dl_err *e)
{
	struct heard *h = ctx;

	(void)c;
	(void)m;
	(void)dest;
	(void)e;
	h->bytes += header->data_size;
	return 0;
}

static inline int heard_whole(void *ctx, struct dl_conn *c,
	const struct dl_message *m, const struct dl_header *header, void *dest,
	struct dl_err *e)
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

/* The connection that listens, and the other end of its socket. */
struct link {
	struct dl_conn c;
	struct heard heard;
	int fd;
};

static inline void link_open(
	struct link *k, const struct dl_handshake_config *session)
{
	static const struct dl_conn_handlers handlers = {
		heard_message, heard_begin, heard_whole};
	struct dl_conn_config cf = {
		.handlers = &handlers,
		.ctx = &k->heard,
		.control = DL_LIMITS_CONTROL,
		.data = DL_LIMITS_CONTROL,
		.queue = DL_CONN_QUEUE,
		.session = session,
	};
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	memset(k, 0, sizeof(*k));
	dl_conn_init(&k->c, fd[0], &cf, 0);
	k->fd = fd[1];
}

static inline void link_work(struct link *k)
{
	if (!k->heard.code)
		k->heard.code =
			dl_conn_work(&k->c, POLLIN | POLLOUT, 0, &k->heard.why);
}

/* n bytes, less than a socket holds, when it still listens. */
static inline void link_say(struct link *k, const void *p, size_t n)
{
	if (k->heard.code)
		return;
	if (n && write(k->fd, p, n) != (ssize_t)n)
		abort();
	link_work(k);
}

/* Nothing more is said; what was heard. */
static inline struct heard link_close(struct link *k)
{
	shutdown(k->fd, SHUT_WR); /* what it says may lie there unread */
	while (!k->heard.code)
		link_work(k);
	dl_conn_release(&k->c);
	close(k->fd);
	return k->heard;
}

static inline int heard_same(const struct heard *a, const struct heard *b)
{
	return a->messages == b->messages && a->records == b->records &&
	       a->bytes == b->bytes && a->code == b->code &&
	       strcmp(a->why.text, b->why.text) == 0;
}

#endif
