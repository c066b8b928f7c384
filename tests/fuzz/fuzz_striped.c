/*
 * Any frames to a connection, and the same with their data as pieces over two
 * streams in another order: it hears the same. Or any bytes at all on the two
 * streams: they end.
 *
 * The input's first byte orders the pieces, or is 0: then the second says how
 * many 256ths of the rest the main stream brings.
 */
#include "fuzz.h"
#include "heard.h"

enum { LONGEST = 16384, PIECES = 512, WINDOW = 1 << 20 };

struct pieces {
	struct {
		const uint8_t *p;
		uint64_t offset;
		size_t n;
	} piece[PIECES];
	size_t n;
};

/* A connection with a stream more, whose other end is *extra. */
static void open_striped(struct link *k, int *extra)
{
	struct link other;

	link_open(k, NULL);
	link_open(&other, NULL);
	dl_conn_stripe(&k->c, 2, WINDOW);
	dl_conn_offer(&other.c);
	dl_conn_adopt(&k->c, &other.c, 0);
	*extra = other.fd;
}

/* On the extra stream; when it is broken off, nothing more is said there. */
static void say_extra(struct link *k, int extra, const void *p, size_t n)
{
	if (k->heard.code || dl_conn_missing(&k->c))
		return;
	if (write(extra, p, n) != (ssize_t)n)
		abort();
	k->heard.code = dl_conn_turn(&k->c, k->c.stripes->lane[1].stream->fd,
		POLLIN, 0, &k->heard.why);
}

static void say_piece(struct link *k, int extra, const struct pieces *all,
	size_t i, int on_extra)
{
	unsigned char bytes[DL_FRAME_HEAD + DL_FRAME_OFFSET + LONGEST];
	size_t n = all->piece[i].n;

	dl_frame_head(bytes, DL_CHANNEL_PIECES, DL_FRAME_OFFSET + n);
	dl_put_le64(bytes + DL_FRAME_HEAD, all->piece[i].offset);
	memcpy(bytes + DL_FRAME_HEAD + DL_FRAME_OFFSET, all->piece[i].p, n);
	n += DL_FRAME_HEAD + DL_FRAME_OFFSET;
	if (on_extra)
		say_extra(k, extra, bytes, n);
	else
		link_say(k, bytes, n);
}

/* Says the control frames, and gathers the others as pieces. */
static size_t take_frames(
	struct link *k, struct pieces *all, const uint8_t *data, size_t n)
{
	struct dl_frame f;
	uint64_t offset = 0;
	size_t at, used;

	for (at = 0;
		all->n < PIECES &&
		!dl_frame_parse(&f, data + at, n - at, &used, NULL) && used;
		at += used) {
		if (f.channel == DL_CHANNEL_CONTROL)
			link_say(k, data + at, used);
		if (f.channel > DL_CHANNEL_DATA)
			break;
		if (f.channel != DL_CHANNEL_DATA)
			continue;
		all->piece[all->n].p = f.payload;
		all->piece[all->n].n = f.n;
		all->piece[all->n++].offset = offset;
		offset += f.n;
	}
	return at;
}

/* Pieces i, i + stride, ... by turns on both streams. */
static void check_order(uint8_t stride, const uint8_t *data, size_t n)
{
	static struct pieces all;
	struct heard plain, striped;
	struct link k;
	size_t whole;
	int extra;

	all.n = 0;
	open_striped(&k, &extra);
	whole = take_frames(&k, &all, data, n);
	for (size_t i = 0; i < stride; i++)
		for (size_t at = i; at < all.n; at += stride)
			say_piece(&k, extra, &all, at, (at ^ stride) & 1);
	close(extra);
	striped = link_close(&k);
	link_open(&k, NULL);
	link_say(&k, data, whole);
	plain = link_close(&k);
	/* What ends in a fault may end in another order at another. */
	if (plain.code == DL_UNAVAILABLE && !heard_same(&plain, &striped))
		abort();
}

static void check_bytes(const uint8_t *data, size_t n, size_t on_main)
{
	struct link k;
	int extra;

	open_striped(&k, &extra);
	link_say(&k, data, on_main);
	say_extra(&k, extra, data + on_main, n - on_main);
	link_work(&k);
	close(extra);
	link_close(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n < 2 || n > LONGEST)
		return 0;
	if (data[0])
		check_order(data[0], data + 1, n - 1);
	else
		check_bytes(data + 2, n - 2, (n - 2) * data[1] / 256);
	return 0;
}
