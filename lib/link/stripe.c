#include "link/stripe.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LOST UINT_MAX

void dl_stripe_out_init(struct dl_stripe_out *s, uint64_t window)
{
	*s = (struct dl_stripe_out){.window = window};
	s->piece = dl_alloc_array(DL_STRIPE_PIECES, sizeof(*s->piece));
}

void dl_stripe_out_release(struct dl_stripe_out *s)
{
	free(s->piece);
	*s = (struct dl_stripe_out){0};
}

static struct dl_piece *piece_at(const struct dl_stripe_out *s, size_t i)
{
	return &s->piece[(s->first + i) % DL_STRIPE_PIECES];
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* New bytes that may go. */
static uint64_t room(const struct dl_stripe_out *s, uint64_t end)
{
	if (s->pieces == DL_STRIPE_PIECES)
		return 0;
	return least(end, s->received + s->window) - s->given;
}

int dl_stripe_can_give(const struct dl_stripe_out *s, uint64_t end)
{
	return s->lost || room(s, end);
}

static struct dl_piece *find_lost(const struct dl_stripe_out *s)
{
	size_t i = 0;

	while (piece_at(s, i)->stream != LOST)
		i++;
	return piece_at(s, i);
}

int dl_stripe_give(struct dl_stripe_out *s, unsigned stream, uint64_t end,
	size_t max, struct dl_piece *out)
{
	uint64_t n = least(room(s, end), max);
	struct dl_piece *p;

	if (!s->lost && !n)
		return 0;
	if (s->lost) {
		p = find_lost(s);
		p->again = 1;
		s->lost--;
	} else {
		p = piece_at(s, s->pieces++);
		*p = (struct dl_piece){.offset = s->given, .n = n};
		s->given += n;
	}
	p->stream = stream;
	*out = *p;
	return 1;
}

void dl_stripe_take_back(struct dl_stripe_out *s, const struct dl_piece *p)
{
	size_t i = s->pieces - 1;

	if (!p->again) {
		s->given = p->offset;
		s->pieces--;
		return;
	}
	while (piece_at(s, i)->offset != p->offset)
		i--;
	piece_at(s, i)->stream = LOST;
	s->lost++;
}

void dl_stripe_lost(struct dl_stripe_out *s, unsigned stream)
{
	size_t i;

	for (i = 0; i < s->pieces; i++)
		if (piece_at(s, i)->stream == stream) {
			piece_at(s, i)->stream = LOST;
			s->lost++;
		}
}

int dl_stripe_received(
	struct dl_stripe_out *s, uint64_t offset, struct dl_err *e)
{
	struct dl_piece *p;
	uint64_t had;

	if (offset < s->received || offset > s->given)
		return dl_fail(e, DL_PROTOCOL,
			"says it received %llu bytes of %llu, had %llu",
			(unsigned long long)offset,
			(unsigned long long)s->given,
			(unsigned long long)s->received);
	s->received = offset;
	while (s->pieces) {
		p = piece_at(s, 0);
		had = least(offset - least(offset, p->offset), p->n);
		p->offset += had;
		p->n -= had;
		if (p->n)
			break;
		s->lost -= p->stream == LOST;
		s->first = (s->first + 1) % DL_STRIPE_PIECES;
		s->pieces--;
	}
	return 0;
}

void dl_stripe_in_init(struct dl_stripe_in *s, uint64_t window)
{
	*s = (struct dl_stripe_in){.window = window};
}

void dl_stripe_in_release(struct dl_stripe_in *s)
{
	if (s->ring)
		dl_big_free(s->ring, s->window);
	free(s->span);
	*s = (struct dl_stripe_in){0};
}

/* The first span that ends at offset or after it. */
static size_t find_span(const struct dl_stripe_in *s, uint64_t offset)
{
	size_t i = 0;

	while (i < s->spans && s->span[i].to < offset)
		i++;
	return i;
}

/* Joins [from, to) to the spans; those it touches become one. */
static int add_span(
	struct dl_stripe_in *s, uint64_t from, uint64_t to, struct dl_err *e)
{
	size_t i = find_span(s, from), k = i;

	while (k < s->spans && s->span[k].from <= to)
		k++;
	if (i == k && s->spans == DL_STRIPE_SPANS)
		return dl_fail(e, DL_PROTOCOL,
			"more than %d pieces with others missing between",
			DL_STRIPE_SPANS);
	if (i < k) {
		from = least(from, s->span[i].from);
		to = s->span[k - 1].to > to ? s->span[k - 1].to : to;
	}
	memmove(s->span + i + 1, s->span + k,
		(s->spans - k) * sizeof(*s->span));
	s->span[i] = (struct dl_span){from, to};
	s->spans = s->spans + 1 - (k - i);
	return 0;
}

/* Bytes from offset on that lie in one stretch of the ring. */
static size_t stretch(const struct dl_stripe_in *s, uint64_t offset, uint64_t n)
{
	return (size_t)least(n, s->window - offset % s->window);
}

static int keep(struct dl_stripe_in *s, uint64_t offset, const unsigned char *p,
	size_t n, struct dl_err *e)
{
	size_t part = stretch(s, offset, n);

	if (!s->ring) {
		s->ring = dl_big_alloc(s->window);
		s->span = dl_alloc_array(DL_STRIPE_SPANS, sizeof(*s->span));
	}
	if (add_span(s, offset, offset + n, e))
		return e->code;
	memcpy(s->ring + offset % s->window, p, part);
	memcpy(s->ring, p + part, n - part);
	return 0;
}

int dl_stripe_put(struct dl_stripe_in *s, uint64_t offset, const void *p,
	size_t n, struct dl_err *e)
{
	uint64_t limit = s->next + s->window, had;

	if (n == 0)
		return dl_fail(e, DL_PROTOCOL, "empty piece");
	if (offset > limit || n > limit - offset)
		return dl_fail(e, DL_PROTOCOL,
			"piece of %zu bytes at %llu, beyond the window's %llu",
			n, (unsigned long long)offset,
			(unsigned long long)limit);
	if (offset > s->next)
		return keep(s, offset, p, n, e);
	had = least(s->next - offset, n);
	s->direct = (const unsigned char *)p + had;
	s->direct_n = n - (size_t)had;
	return 0;
}

static size_t take_direct(struct dl_stripe_in *s, const unsigned char **p)
{
	size_t n = s->direct_n;

	*p = s->direct;
	s->next += n;
	s->direct_n = 0;
	return n;
}

size_t dl_stripe_take(struct dl_stripe_in *s, const unsigned char **p)
{
	size_t n;

	if (s->direct_n)
		return take_direct(s, p);
	while (s->spans && s->span[0].to <= s->next)
		memmove(s->span, s->span + 1, --s->spans * sizeof(*s->span));
	if (!s->spans || s->span[0].from > s->next)
		return 0;
	*p = s->ring + s->next % s->window;
	n = stretch(s, s->next, s->span[0].to - s->next);
	s->next += n;
	return n;
}
