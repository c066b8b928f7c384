#include <string.h>

#include "base/mem.h"
#include "link/frame.h"
#include "tests/tap.h"

static unsigned char payload[DL_FRAME_PAYLOAD];

static void add(struct dl_buf *b, enum dl_channel channel, size_t n)
{
	unsigned char head[DL_FRAME_HEAD];

	dl_frame_head(head, channel, n);
	dl_buf_add(b, head, sizeof(head));
	dl_buf_add(b, payload, n);
}

/* A frame is incomplete at every prefix and whole at its end, with or without
 * bytes of another behind it. */
static void test_split(size_t n, enum dl_channel channel)
{
	struct dl_buf b = DL_BUF_INIT;
	struct dl_frame f;
	struct dl_err e;
	size_t at, used, wrong = 0;

	add(&b, channel, n);
	for (at = 0; at < b.len; at += 1 + (at > 300 && at < b.len - 300) * 97)
		wrong += dl_frame_parse(&f, b.data, at, &used, &e) || used;
	ok(wrong == 0, "%zu bytes: every prefix is incomplete", n);
	ok(dl_frame_parse(&f, b.data, b.len, &used, &e) == 0 && used == b.len &&
			f.n == n && f.channel == channel &&
			memcmp(f.payload, payload, n) == 0,
		"%zu bytes: whole", n);
	add(&b, DL_CHANNEL_CONTROL, 5);
	ok(dl_frame_parse(&f, b.data, b.len, &used, &e) == 0 &&
			used == n + DL_FRAME_HEAD && f.n == n,
		"%zu bytes: the next frame is left alone", n);
	dl_buf_free(&b);
}

static void test_bad(
	const char *what, const char *bytes, size_t n, const char *says)
{
	struct dl_frame f;
	struct dl_err e = {0};
	size_t used;

	ok(dl_frame_parse(&f, bytes, n, &used, &e) == DL_PROTOCOL &&
			used == 0 && strstr(e.text, says),
		"%s is refused: %s", what, e.text);
}

int main(void)
{
	struct dl_frame f;
	struct dl_err e;
	size_t i, used;

	for (i = 0; i < sizeof(payload); i++)
		payload[i] = (unsigned char)(i * 7 + i / 256);
	test_split(0, DL_CHANNEL_CONTROL);
	test_split(1, DL_CHANNEL_DATA);
	test_split(1000, DL_CHANNEL_CONTROL);
	test_split(DL_FRAME_PAYLOAD, DL_CHANNEL_DATA);

	test_bad("length 0", "\0\0", 2, "without a channel");
	test_bad("length 0 with more", "\0\0\1\0", 4, "without a channel");
	test_bad("length 65520", "\xf0\xff", 2, "65520 bytes");
	test_bad("length 65535", "\xff\xff\0", 3, "65535 bytes");
	test_bad("channel 4", "\5\0\4", 3, "channel 4");
	test_bad("channel 255", "\1\0\377", 3, "channel 255");
	test_bad("an empty frame of data", "\1\0\1", 3, "empty");
	ok(dl_frame_parse(&f, "\xef\xff\1", 3, &used, &e) == 0 && !used,
		"length 65519 is allowed");
	return done_testing();
}
