#include "link/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
	LENGTH = 2,
	SEALED_MAX = LENGTH + 1 + DL_FRAME_PAYLOAD + DL_CIPHER_TAG,
	/* Two full frames wait for the socket: about as much as it lets wait
	 * itself (TCP_NOTSENT_LOWAT). */
	ROOM = 2 * SEALED_MAX,
};

struct dl_session {
	struct dl_handshake handshake;
	int ready;
	unsigned char peer[DL_KEY];
	struct dl_cipher send, receive;
	unsigned char *out; /* ROOM bytes, once there is something to seal */
	size_t out_n, out_at;
};

struct dl_session *dl_session_new(const struct dl_handshake_config *c)
{
	struct dl_session *s = dl_alloc(sizeof(*s));

	dl_handshake_init(&s->handshake, c);
	return s;
}

void dl_session_free(struct dl_session *s)
{
	if (!s)
		return;
	dl_handshake_release(&s->handshake);
	dl_cipher_release(&s->send);
	dl_cipher_release(&s->receive);
	free(s->out);
	free(s);
}

int dl_session_begin(struct dl_session *s, const void *p, size_t n,
	size_t *used, struct dl_err *e)
{
	int code = dl_handshake_feed(&s->handshake, p, n, used, e);

	if (code || !dl_handshake_done(&s->handshake))
		return code;
	dl_handshake_split(&s->handshake, &s->send, &s->receive, s->peer);
	s->ready = 1;
	return 0;
}

int dl_session_ready(const struct dl_session *s)
{
	return s->ready;
}

const unsigned char *dl_session_peer(const struct dl_session *s)
{
	return s->peer;
}

const void *dl_session_output(const struct dl_session *s, size_t *n)
{
	if (s->handshake.out_n) {
		*n = s->handshake.out_n;
		return s->handshake.out;
	}
	*n = s->out_n - s->out_at;
	return *n ? s->out + s->out_at : NULL;
}

void dl_session_sent(struct dl_session *s, size_t n)
{
	if (s->handshake.out_n)
		dl_handshake_sent(&s->handshake, n);
	else
		s->out_at += n;
}

/* Frame i of b, after what is sealed already: gathered, since a cipher takes
 * it in one piece, and sealed in place. */
static int seal_frame(struct dl_session *s, const struct dl_batch *b, size_t i,
	struct dl_err *e)
{
	size_t end = i + 1 < b->frames ? b->frame[i + 1].from : b->pieces, j;
	unsigned char *body = s->out + s->out_n + LENGTH, *p = body;
	int code;

	*p++ = (unsigned char)b->frame[i].channel;
	for (j = b->frame[i].from + 1; j < end; j++) {
		memcpy(p, b->piece[j].iov_base, b->piece[j].iov_len);
		p += b->piece[j].iov_len;
	}
	code = dl_cipher_seal(
		&s->send, body, body, (size_t)(p - body), NULL, 0, e);
	if (code)
		return code;
	p += DL_CIPHER_TAG;
	dl_put_le16(s->out + s->out_n, (uint16_t)(p - body));
	s->out_n += LENGTH + (size_t)(p - body);
	return 0;
}

int dl_session_seal(struct dl_session *s, const struct dl_batch *b,
	size_t *frames, struct dl_err *e)
{
	size_t size;
	int code;

	if (!s->out)
		s->out = dl_alloc(ROOM);
	s->out_n = s->out_at = 0;
	for (*frames = 0; *frames < b->frames; ++*frames) {
		size = LENGTH + 1 + b->frame[*frames].n + DL_CIPHER_TAG;
		if (size > ROOM - s->out_n)
			break;
		code = seal_frame(s, b, *frames, e);
		if (code)
			return code;
	}
	return 0;
}

int dl_session_open(struct dl_session *s, struct dl_frame *f, unsigned char *p,
	size_t n, size_t *used, struct dl_err *e)
{
	unsigned char *body = p + LENGTH;
	size_t length;
	int code;

	*used = 0;
	if (n < LENGTH)
		return 0;
	length = dl_le16(p);
	if (length <= DL_CIPHER_TAG)
		return dl_fail(
			e, DL_PROTOCOL, "sealed frame of %zu bytes", length);
	if (n - LENGTH < length)
		return 0;
	code = dl_cipher_open(&s->receive, body, body, length, NULL, 0, e);
	if (!code)
		code = dl_frame_body(f, body, length - DL_CIPHER_TAG, e);
	if (!code)
		*used = LENGTH + length;
	return code;
}
