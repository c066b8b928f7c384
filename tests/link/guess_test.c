/*
 * Data that is received where it belongs: whatever frames come, cut anywhere,
 * it is what parsing them one by one gives.
 */
#include "link/guess.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/tap.h"

enum { RECORD = 300000, TURNS = 200 };

static unsigned char data[RECORD], got[RECORD];

static void add_frame(struct dl_buf *b, enum dl_channel channel, size_t n,
	const unsigned char *payload)
{
	unsigned char head[DL_FRAME_HEAD];

	dl_frame_head(head, channel, n);
	dl_buf_add(b, head, sizeof head);
	dl_buf_add(b, payload, n);
}

/* The data of a record in frames, mostly as guessed, others between. */
static size_t fill(struct dl_buf *b, struct dl_rng *r)
{
	size_t at = 0, n, others = 0;

	for (; at < RECORD; at += n) {
		n = DL_FRAME_PAYLOAD;
		if (!dl_rng_below(r, 4))
			n = 1 + dl_rng_below(r, DL_FRAME_PAYLOAD);
		if (n > RECORD - at)
			n = RECORD - at;
		add_frame(b, DL_CHANNEL_DATA, n, data + at);
		if (!dl_rng_below(r, 3)) {
			add_frame(b, DL_CHANNEL_CONTROL, dl_rng_below(r, 9),
				data);
			others++;
		}
	}
	return others;
}

struct reader {
	size_t placed, others, left;
	struct dl_buf rest;
};

/* Frames that are not in their place, and the beginning of one of data. */
static void take_rest(struct reader *k)
{
	size_t used, at = 0, n;
	struct dl_frame f;
	struct dl_err e;

	while (!dl_frame_parse(
		       &f, k->rest.data + at, k->rest.len - at, &used, &e) &&
		used) {
		at += used;
		k->others += f.channel == DL_CHANNEL_CONTROL;
		if (f.channel != DL_CHANNEL_DATA)
			continue;
		memcpy(got + k->placed, f.payload, f.n);
		k->placed += f.n;
	}
	dl_buf_drop(&k->rest, at);
	n = k->rest.len;
	if (n < DL_FRAME_HEAD || k->rest.data[2] != DL_CHANNEL_DATA)
		return;
	n -= DL_FRAME_HEAD;
	k->left = dl_le16(k->rest.data) - 1 - n;
	memcpy(got + k->placed, k->rest.data + DL_FRAME_HEAD, n);
	k->placed += n;
	dl_buf_clear(&k->rest);
}

/* The next bytes of the stream, at most n: into the pieces, or behind what
 * could not be parsed. How many. */
static size_t receive(struct reader *k, const unsigned char *p, size_t n)
{
	struct dl_guess g;
	size_t came = 0;

	if (k->rest.len || k->placed == RECORD) {
		n = n < 5 ? n : 5;
		dl_buf_add(&k->rest, p, n);
		return n;
	}
	dl_guess_make(&g, k->left, got + k->placed, RECORD - k->placed);
	for (size_t i = 0; i < g.pieces && came < n; i++) {
		size_t part = g.piece[i].iov_len;

		part = part < n - came ? part : n - came;
		memcpy(g.piece[i].iov_base, p + came, part);
		came += part;
	}
	k->placed += dl_guess_check(&g, came, &k->left, &k->rest);
	return came;
}

static int read_all(uint64_t seed)
{
	struct dl_rng r = {seed, 0};
	struct dl_buf stream = DL_BUF_INIT;
	struct reader k = {0};
	size_t others = fill(&stream, &r), most, same;

	memset(got, 0, sizeof got);
	for (size_t at = 0; at < stream.len;) {
		most = 1 + dl_rng_below(&r, dl_rng_below(&r, 2) ? 7 : 200000);
		if (most > stream.len - at)
			most = stream.len - at;
		at += receive(&k, stream.data + at, most);
		take_rest(&k);
	}
	same = k.placed == RECORD && k.others == others && !k.left &&
	       !k.rest.len && !memcmp(got, data, RECORD);
	dl_buf_free(&stream);
	dl_buf_free(&k.rest);
	return same;
}

static void test_next_record(void)
{
	unsigned char head[DL_FRAME_HEAD];
	struct dl_buf rest = DL_BUF_INIT;
	struct dl_guess g;
	size_t left = 0;

	dl_guess_make(&g, 20, got, 8);
	ok(g.pieces == 1 && g.piece[0].iov_len == 8,
		"of a frame that goes on with another record only this one");
	left = 20;
	ok(dl_guess_check(&g, 8, &left, &rest) == 8 && left == 12 && !rest.len,
		"the rest of that frame is still to come");
	dl_guess_make(&g, 0, got, RECORD);
	ok(g.pieces == DL_GUESS_PIECES - 1,
		"a guess is no longer than allowed");
	dl_frame_head(head, DL_CHANNEL_DATA, 5);
	memcpy(g.piece[0].iov_base, head, sizeof head);
	memcpy(g.piece[1].iov_base, data, 9);
	left = 0;
	ok(!dl_guess_check(&g, 12, &left, &rest) && rest.len == 12 &&
			!memcmp(rest.data, head, sizeof head) &&
			!memcmp(rest.data + sizeof head, data, 9),
		"what is not as guessed is moved");
	dl_buf_free(&rest);
}

int main(void)
{
	struct dl_rng r = {1, 0};
	int wrong = 0;

	for (size_t i = 0; i < RECORD; i++)
		data[i] = (unsigned char)dl_rng_below(&r, 256);
	for (uint64_t seed = 1; seed <= TURNS; seed++)
		wrong += !read_all(seed);
	ok(!wrong, "%d streams of frames, cut anywhere", TURNS);
	test_next_record();
	return done_testing();
}
