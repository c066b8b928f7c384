/*
 * A stream's session: its handshake, then frames sealed and opened. Does no
 * I/O.
 */
#ifndef DL_LINK_SESSION_H
#define DL_LINK_SESSION_H

#include <stddef.h>

#include "base/err.h"
#include "link/batch.h"
#include "link/cipher.h"
#include "link/handshake.h"

struct dl_session;

/* What c points to is borrowed until dl_session_ready or free. */
struct dl_session *dl_session_new(const struct dl_handshake_config *c);
void dl_session_free(struct dl_session *s); /* wiped; NULL is fine */

/* The handshake takes *used of n bytes that came: all until it is ready. Its
 * last words are put out too; the codes of dl_handshake_feed. */
int dl_session_begin(struct dl_session *s, const void *p, size_t n,
	size_t *used, struct dl_err *e);
/* Frames can be sealed and opened. */
int dl_session_ready(const struct dl_session *s);
/* The other's public key, once it is ready. */
const unsigned char *dl_session_peer(const struct dl_session *s);

/* What is to be sent before anything else: *n bytes, maybe 0. */
const void *dl_session_output(const struct dl_session *s, size_t *n);
void dl_session_sent(struct dl_session *s, size_t n); /* so much of it was */

/*
 * Seals the frames at the front of b, when nothing else is to be sent: *frames
 * of them, few enough that control overtakes the rest in time. They are done
 * with.
 */
int dl_session_seal(struct dl_session *s, const struct dl_batch *b,
	size_t *frames, struct dl_err *e);

/* As dl_frame_parse, of sealed bytes, which are opened where they are: 76 too
 * when they do not open. */
int dl_session_open(struct dl_session *s, struct dl_frame *f, unsigned char *p,
	size_t n, size_t *used, struct dl_err *e);

#endif
