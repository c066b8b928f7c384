#include "cmd/fetch/take.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

void take_init(struct take *t, int fd)
{
	*t = (struct take){.fd = fd};
}

void take_release(struct take *t)
{
	free(t->range);
	free(t->data);
	*t = (struct take){.fd = -1};
}

void take_range(struct take *t, uint64_t offset, uint64_t bytes)
{
	if (t->ranges == t->cap) {
		t->cap = t->cap ? 2 * t->cap : 16;
		t->range = dl_resize(t->range, t->cap, sizeof *t->range);
	}
	t->range[t->ranges++] = (struct take_range){offset, bytes};
}

size_t take_whole_ranges(const struct take *t)
{
	return t->got.range;
}

/* The piece at that place: both sides of a range agree on where it is cut. */
static size_t piece(
	const struct take *t, const struct take_place *p, uint64_t *offset)
{
	const struct take_range *r = &t->range[p->range];
	uint64_t left = r->bytes - p->at;

	*offset = r->offset + p->at;
	return left < DL_FETCH_BYTES ? (size_t)left : DL_FETCH_BYTES;
}

static void pass(const struct take *t, struct take_place *p, size_t n)
{
	p->at += n;
	if (p->at == t->range[p->range].bytes)
		*p = (struct take_place){p->range + 1, 0};
}

void take_ask(struct take *t, struct dl_conn *c)
{
	while (t->asked.range < t->ranges && t->out < DL_FETCHES) {
		struct dl_message m = {.kind = DL_MSG_FETCH};

		m.bytes = piece(t, &t->asked, &m.offset);
		pass(t, &t->asked, (size_t)m.bytes);
		t->out++;
		dl_conn_send(c, &m);
	}
}

int take_begin(struct take *t, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	uint64_t offset;
	size_t n;

	if (!t->out)
		return dl_fail(e, DL_PROTOCOL, "a part that nobody asked for");
	n = piece(t, &t->got, &offset);
	if (m->offset != offset || h->data_size != n)
		return dl_fail(e, DL_PROTOCOL,
			"%llu bytes at %llu come in place of %zu at %llu",
			(unsigned long long)h->data_size,
			(unsigned long long)m->offset, n,
			(unsigned long long)offset);
	if (!t->data)
		t->data = dl_alloc(DL_FETCH_BYTES);
	*dest = t->data;
	return 0;
}

int take_part(struct take *t, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	char hex[DL_HASH_HEX];
	struct dl_hash hash;
	uint64_t offset;
	size_t n = piece(t, &t->got, &offset);

	dl_hash_init(&hash);
	dl_hash_add(&hash, t->data, n);
	dl_hash_hex(&hash, hex);
	if (strcmp(hex, m->hash) != 0)
		return dl_fail(e, DL_PROTOCOL,
			"a part at %llu that is not what its hash names",
			(unsigned long long)offset);
	if (dl_pwrite_full(
		    t->fd, t->data, n, offset + (uint64_t)t->shift))
		return dl_fail_sys(e, DL_IOERR, "writing what was fetched");
	pass(t, &t->got, n);
	t->out--;
	take_ask(t, c);
	return 0;
}
