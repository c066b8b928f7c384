#include "link/handshake.h"

#include <string.h>

#include "base/mem.h"

enum { HEAD = 2 }; /* a message's length */

static void put_prologue(struct dl_handshake *h, const void *line, size_t n)
{
	memcpy(h->prologue + h->prologue_n, line, n);
	h->prologue_n += n;
}

/* Noise begins when both lines are known. */
static void begin_noise(struct dl_handshake *h, enum dl_suite suite)
{
	dl_noise_init(&h->noise, suite, h->config.own, h->config.peer,
		h->prologue, h->prologue_n);
	h->state = DL_HANDSHAKE_MESSAGE;
	h->in_n = 0;
}

void dl_handshake_init(
	struct dl_handshake *h, const struct dl_handshake_config *c)
{
	memset(h, 0, sizeof(*h));
	h->config = *c;
	if (!c->peer)
		return;
	h->out_n = dl_preface_ask((char *)h->out, *c->run ? c->run : NULL);
	put_prologue(h, h->out, h->out_n);
}

void dl_handshake_release(struct dl_handshake *h)
{
	sodium_memzero(h, sizeof(*h));
}

int dl_handshake_done(const struct dl_handshake *h)
{
	return h->state == DL_HANDSHAKE_DONE;
}

void dl_handshake_sent(struct dl_handshake *h, size_t n)
{
	h->out_n -= n;
	memmove(h->out, h->out + n, h->out_n);
}

/* A refusal in place of message 2. */
static void refuse(struct dl_handshake *h, int code, const char *text)
{
	dl_put_le16(h->out, 0);
	h->out_n = HEAD + dl_preface_refuse((char *)h->out + HEAD, code, text);
}

static int put_message1(struct dl_handshake *h, struct dl_err *e)
{
	unsigned char *message = h->out + HEAD;
	int code = dl_noise_write1(&h->noise, message, NULL, 0, e);

	dl_put_le16(h->out, DL_HANDSHAKE_FIRST);
	dl_mac1_make(message + DL_NOISE_FIRST, h->config.peer, h->prologue,
		h->prologue_n, message, DL_NOISE_FIRST);
	h->out_n = code ? 0 : HEAD + DL_HANDSHAKE_FIRST;
	return code;
}

static int take_message1(struct dl_handshake *h, struct dl_err *e)
{
	const unsigned char *message = h->in + HEAD;
	int code;

	if (!dl_mac1_check(message + DL_NOISE_FIRST, h->config.own->public,
		    h->prologue, h->prologue_n, message, DL_NOISE_FIRST)) {
		refuse(h, DL_PROTOCOL, "this syncer has another key");
		return dl_fail(e, DL_PROTOCOL,
			"handshake: made for another syncer's key");
	}
	code = dl_noise_read1(&h->noise, NULL, message, DL_NOISE_FIRST, e);
	if (!code)
		code = dl_noise_write2(&h->noise, h->out + HEAD, NULL, 0, e);
	if (code)
		return code;
	dl_put_le16(h->out, DL_NOISE_SECOND);
	h->out_n = HEAD + DL_NOISE_SECOND;
	h->state = DL_HANDSHAKE_DONE;
	return 0;
}

static int take_message2(struct dl_handshake *h, struct dl_err *e)
{
	int code = dl_noise_read2(
		&h->noise, NULL, h->in + HEAD, DL_NOISE_SECOND, e);

	if (!code)
		h->state = DL_HANDSHAKE_DONE;
	return code;
}

/* The length of a message says at once whether it is one. */
static int take_length(struct dl_handshake *h, struct dl_err *e)
{
	size_t n = dl_le16(h->in);

	if (h->config.peer && n == 0) {
		h->state = DL_HANDSHAKE_WORDS;
		h->in_n = 0;
		return 0;
	}
	if (n != (h->config.peer ? DL_NOISE_SECOND : DL_HANDSHAKE_FIRST))
		return dl_fail(
			e, DL_PROTOCOL, "handshake: a message of %zu bytes", n);
	return 0;
}

static int take_line(struct dl_handshake *h, size_t n, struct dl_err *e)
{
	const char *line = (const char *)h->in;
	enum dl_suite suite;
	int code;

	if (h->state == DL_HANDSHAKE_WORDS) {
		code = dl_preface_refused(line, n, e);
		return code ? code
			    : dl_fail(e, DL_PROTOCOL,
				      "handshake: no message 2");
	}
	put_prologue(h, h->in, n);
	if (h->config.peer) {
		code = dl_preface_accept(&suite, line, n, e);
		if (code)
			return code;
		begin_noise(h, suite);
		return put_message1(h, e);
	}
	code = dl_preface_answer(
		(char *)h->out, &h->out_n, &suite, line, n, h->config.run, e);
	if (code)
		return code;
	put_prologue(h, h->out, h->out_n);
	begin_noise(h, suite);
	return 0;
}

/* Up to n bytes of a line: how many. */
static size_t feed_line(
	struct dl_handshake *h, const void *p, size_t n, struct dl_err *e)
{
	const unsigned char *end;
	size_t line;

	if (n > sizeof(h->in) - h->in_n)
		n = sizeof(h->in) - h->in_n;
	end = memchr(p, '\n', n);
	if (end)
		n = (size_t)(end + 1 - (const unsigned char *)p);
	memcpy(h->in + h->in_n, p, n);
	h->in_n += n;
	if (dl_preface_line((const char *)h->in, h->in_n, &line, e)) {
		if (!h->config.peer)
			h->out_n = dl_preface_refuse(
				(char *)h->out, DL_PROTOCOL, dl_preface_wanted);
	} else if (line) {
		take_line(h, line, e);
	}
	return n;
}

/* Up to n bytes of a message: how many. */
static size_t feed_message(
	struct dl_handshake *h, const void *p, size_t n, struct dl_err *e)
{
	size_t head = h->in_n < HEAD;
	size_t whole = head ? HEAD : HEAD + dl_le16(h->in);

	if (n > whole - h->in_n)
		n = whole - h->in_n;
	memcpy(h->in + h->in_n, p, n);
	h->in_n += n;
	if (h->in_n < whole)
		return n;
	if (head)
		take_length(h, e);
	else if (h->config.peer)
		take_message2(h, e);
	else
		take_message1(h, e);
	return n;
}

int dl_handshake_feed(struct dl_handshake *h, const void *p, size_t n,
	size_t *used, struct dl_err *e)
{
	const unsigned char *b = p;
	struct dl_err why = {0};

	*used = 0;
	while (!why.code && !dl_handshake_done(h) && *used < n)
		*used += h->state == DL_HANDSHAKE_MESSAGE
				 ? feed_message(h, b + *used, n - *used, &why)
				 : feed_line(h, b + *used, n - *used, &why);
	if (!why.code)
		return 0;
	h->state = DL_HANDSHAKE_FAILED;
	if (e)
		*e = why;
	return why.code;
}

void dl_handshake_split(struct dl_handshake *h, struct dl_cipher *send,
	struct dl_cipher *receive, unsigned char peer[DL_KEY])
{
	dl_noise_split(&h->noise, send, receive);
	memcpy(peer, h->noise.peer, DL_KEY);
}
