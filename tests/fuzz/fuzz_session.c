/*
 * Any frames to a connection, plain and in a session: it hears the same and
 * ends in the same way. Of sealed frames with a byte changed on the way it
 * hears those before, and no other.
 *
 * The input: which byte of the sealed ones is changed (two bytes) and how (one,
 * 0: not), then plain frames.
 */
#include "fuzz.h"
#include "heard.h"
#include "keys.h"
#include "link/session.h"

enum { LONGEST = 16384 }; /* input, less than a socket holds */

static const struct dl_handshake_config ours = {
	.own = &fuzz_syncer, .run = "demo"};

/* A learner's session with the connection at the other end. */
static struct dl_session *meet(struct link *k)
{
	struct dl_handshake_config c = {
		.own = &fuzz_learner, .peer = fuzz_syncer.public, .run = ""};
	struct dl_session *s = dl_session_new(&c);
	unsigned char bytes[1024];
	const void *out;
	size_t n, used;
	ssize_t got;

	while (!dl_session_ready(s)) {
		out = dl_session_output(s, &n);
		link_say(k, out, n);
		dl_session_sent(s, n);
		got = read(k->fd, bytes, sizeof(bytes));
		if (got <= 0 ||
			dl_session_begin(s, bytes, (size_t)got, &used, NULL))
			abort();
	}
	return s;
}

/* Seals one frame onto out. */
static void seal(
	struct dl_session *s, const struct dl_frame *f, struct dl_buf *out)
{
	struct dl_batch b;
	const void *bytes;
	size_t n, frames;

	dl_batch_clear(&b);
	dl_batch_frame(&b, f->channel, f->n);
	dl_batch_add(&b, f->payload, f->n);
	if (dl_session_seal(s, &b, &frames, NULL) || frames != 1)
		abort();
	bytes = dl_session_output(s, &n);
	dl_buf_add(out, bytes, n);
	dl_session_sent(s, n);
}

/* The size of the whole frames at the front. */
static size_t count_frames(const uint8_t *data, size_t n)
{
	struct dl_frame f;
	size_t at = 0, used;

	while (!dl_frame_parse(&f, data + at, n - at, &used, NULL) && used)
		at += used;
	return at;
}

static struct heard hear_plain(const uint8_t *data, size_t n)
{
	struct link k;

	link_open(&k, NULL);
	link_say(&k, data, n);
	return link_close(&k);
}

static struct heard hear_sealed(
	const uint8_t *data, size_t n, size_t flip_at, uint8_t flip)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_session *s;
	struct dl_frame f;
	struct link k;
	size_t used;

	fuzz_reset_random();
	link_open(&k, &ours);
	s = meet(&k);
	for (; n; data += used, n -= used) {
		if (dl_frame_parse(&f, data, n, &used, NULL))
			abort();
		seal(s, &f, &out);
	}
	if (out.len)
		out.data[flip_at % out.len] ^= flip;
	link_say(&k, out.data, out.len);
	dl_session_free(s);
	dl_buf_free(&out);
	return link_close(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct heard plain, sealed;
	size_t frames;

	if (n < 3 || n > LONGEST)
		return 0;
	fuzz_make_keys();
	frames = count_frames(data + 3, n - 3);
	plain = hear_plain(data + 3, frames);
	sealed = hear_sealed(data + 3, frames, dl_le16(data), data[2]);
	if (sealed.messages > plain.messages ||
		sealed.records > plain.records || sealed.bytes > plain.bytes)
		abort();
	if (!data[2] && !heard_same(&plain, &sealed))
		abort();
	if (data[2] && frames && sealed.code != DL_PROTOCOL &&
		sealed.code != DL_UNAVAILABLE)
		abort();
	return 0;
}
