#include "link/guess.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void add_piece(struct dl_guess *g, void *p, size_t n)
{
	g->piece[g->pieces++] = (struct iovec){p, n};
}

void dl_guess_make(struct dl_guess *g, size_t left, void *p, size_t n)
{
	unsigned char *to = p;
	size_t part = least(left, n);

	g->pieces = 0;
	g->inside = left > 0;
	if (part)
		add_piece(g, to, part);
	for (int i = 0; part == left && i < DL_GUESS_FRAMES && n > part; i++) {
		to += part;
		n -= part;
		part = left = least(n, DL_FRAME_PAYLOAD);
		dl_frame_head(g->expected[i], DL_CHANNEL_DATA, part);
		add_piece(g, g->head[i], DL_FRAME_HEAD);
		add_piece(g, to, part);
	}
}

/* The bytes that came in the pieces from the i-th on. */
static void move(
	const struct dl_guess *g, size_t i, size_t got, struct dl_buf *rest)
{
	for (; got; i++) {
		size_t n = least(got, g->piece[i].iov_len);

		dl_buf_add(rest, g->piece[i].iov_base, n);
		got -= n;
	}
}

/* A frame's head, which is the i-th piece, came as it was expected. */
static int is_as_guessed(const struct dl_guess *g, size_t i, size_t got)
{
	size_t frame = (i - g->inside) / 2;

	return got >= DL_FRAME_HEAD &&
	       !memcmp(g->head[frame], g->expected[frame], DL_FRAME_HEAD);
}

size_t dl_guess_check(
	struct dl_guess *g, size_t got, size_t *left, struct dl_buf *rest)
{
	size_t placed = 0, n;

	for (size_t i = 0; got; i++) {
		if (i || !g->inside) {
			if (!is_as_guessed(g, i, got)) {
				move(g, i, got, rest);
				break;
			}
			got -= DL_FRAME_HEAD;
			*left = g->piece[++i].iov_len;
		}
		n = least(got, g->piece[i].iov_len);
		*left -= n;
		placed += n;
		got -= n;
	}
	return placed;
}
