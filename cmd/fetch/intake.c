#include "cmd/fetch/intake.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tensor/arith.h"

enum {
	LENGTH = 8,  /* of a header's length */
	SLACK = 4096 /* data begin at a multiple of it, and a header of a donor
		      * may be so much longer than the first's */
};

static const uint64_t head_max = 100000000;

static void forget(struct intake *i)
{
	dl_buf_free(&i->head);
	dl_header_release(&i->header);
	i->header = (struct dl_header){0};
	dl_groups_release(&i->groups);
	free(i->whole);
	i->whole = NULL;
	i->bytes = i->got = i->clock = 0;
}

void intake_lost(struct intake *i)
{
	struct intake_donor *d = &i->donor;

	if (d->at)
		take_release(&d->take);
	free(d->version);
	free(d->end);
	*d = (struct intake_donor){0};
}

void intake_release(struct intake *i)
{
	intake_lost(i);
	forget(i);
	free(i->version);
	i->version = NULL;
}

static int check_state(
	const struct intake *i, const struct dl_message *m, struct dl_err *e)
{
	if (m->fragments != i->layout->fragments)
		return dl_fail(e, DL_PROTOCOL,
			"a state of %u fragments, not of %u", m->fragments,
			i->layout->fragments);
	for (uint32_t p = 0; p < m->fragments; p++)
		if (!m->versions[p].epoch)
			return dl_fail(e, DL_PROTOCOL,
				"a state without fragment %u", p);
	if (m->bytes <= LENGTH || m->bytes > INT64_MAX - 3 * SLACK)
		return dl_fail(e, DL_DATA, "a state of %llu bytes",
			(unsigned long long)m->bytes);
	return 0;
}

/* All of the file is free for what this donor has. */
static int begin_anew(struct intake *i, struct dl_err *e)
{
	uint64_t room = i->donor.bytes + 2 * SLACK;

	forget(i);
	if (!i->version) {
		i->version = dl_alloc_array(
			i->layout->fragments, sizeof *i->version);
		i->fd = -1;
	}
	if (i->fd < 0 || room != i->room)
		i->fd = i->create(i->ctx, room, e);
	i->room = room;
	i->donor.take.fd = i->fd;
	return i->fd < 0 ? e->code : 0;
}

int intake_state(struct intake *i, struct dl_conn *c,
	const struct dl_message *m, struct dl_err *e)
{
	struct intake_donor *d = &i->donor;
	size_t n = i->layout->fragments;

	if (d->at)
		return dl_fail(e, DL_PROTOCOL, "state comes twice");
	if (check_state(i, m, e))
		return e->code;
	d->clock = m->clock;
	d->bytes = m->bytes;
	if (!i->got && begin_anew(i, e))
		return e->code;
	d->version = dl_alloc_array(n, sizeof *d->version);
	memcpy(d->version, m->versions, n * sizeof *d->version);
	d->at = INTAKE_SIZE;
	take_init(&d->take, i->fd);
	take_range(&d->take, 0, LENGTH);
	take_ask(&d->take, c);
	return 0;
}

int intake_begin(struct intake *i, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	if (!i->donor.at)
		return dl_fail(e, DL_PROTOCOL, "a part of nothing");
	return take_begin(&i->donor.take, m, h, dest, e);
}

static int read_at(
	int fd, void *out, size_t n, uint64_t offset, struct dl_err *e)
{
	if (dl_pread_full(fd, out, n, offset) == (ssize_t)n)
		return 0;
	return dl_fail_sys(e, DL_IOERR, "reading what was fetched");
}

static int on_size(struct intake *i, struct dl_err *e)
{
	struct intake_donor *d = &i->donor;
	unsigned char length[LENGTH];
	uint64_t n;

	if (read_at(i->fd, length, LENGTH, 0, e))
		return e->code;
	n = dl_le64(length);
	if (n > head_max || n > d->bytes - LENGTH || !n)
		return dl_fail(e, DL_DATA,
			"a header of %llu bytes in a state of %llu",
			(unsigned long long)n, (unsigned long long)d->bytes);
	d->head_size = n;
	/* It would overwrite data of another's. */
	if (i->groups.groups && LENGTH + n > i->data_at && begin_anew(i, e))
		return e->code;
	take_range(&d->take, LENGTH, n);
	d->at = INTAKE_HEAD;
	return 0;
}

/* What comes from this donor is the first there is. */
static int begin_with(struct intake *i, struct dl_buf *head,
	struct dl_header *h, struct dl_err *e)
{
	struct dl_groups groups;

	if (dl_groups_make(&groups, i->layout, h, e))
		return e->code;
	if (begin_anew(i, e)) {
		dl_groups_release(&groups);
		return e->code;
	}
	i->groups = groups;
	i->whole = dl_alloc(groups.groups);
	i->bytes = h->data_size;
	i->data_at = (LENGTH + head->len + 2 * SLACK - 1) / SLACK * SLACK;
	i->head = *head;
	i->header = *h;
	*head = (struct dl_buf)DL_BUF_INIT;
	*h = (struct dl_header){0};
	return 0;
}

static int take_head(struct intake *i, struct dl_buf *head, struct dl_header *h,
	struct dl_err *e)
{
	struct intake_donor *d = &i->donor;

	if (read_at(i->fd, head->data, head->len, LENGTH, e) ||
		dl_header_parse(h, head->data, head->len, e))
		return e->code;
	if (h->data_size != d->bytes - LENGTH - d->head_size)
		return dl_fail(e, DL_DATA,
			"tensors of %llu bytes in a state that has %llu",
			(unsigned long long)h->data_size,
			(unsigned long long)(d->bytes - LENGTH - d->head_size));
	if (i->groups.groups && dl_groups_same(&i->header, h))
		return 0;
	return begin_with(i, head, h, e);
}

/* Asks for all that is not whole, group by group. */
static void want_data(struct intake *i)
{
	struct intake_donor *d = &i->donor;
	const struct dl_groups *g = &i->groups;
	uint64_t from = LENGTH + d->head_size, offset, bytes;
	size_t ranges = 0;

	take_release(&d->take);
	take_init(&d->take, i->fd);
	d->take.shift = (int64_t)i->data_at - (int64_t)from;
	d->end = dl_alloc_array(g->groups, sizeof *d->end);
	for (size_t k = 0; k < g->groups; k++) {
		size_t at = g->first[k];

		while (!i->whole[k] &&
			dl_groups_range(g, &i->header, &at, g->first[k + 1],
				&offset, &bytes)) {
			take_range(&d->take, from + offset, bytes);
			ranges++;
		}
		d->end[k] = ranges;
	}
	d->at = INTAKE_DATA;
}

static int on_head(struct intake *i, struct dl_err *e)
{
	struct intake_donor *d = &i->donor;
	struct dl_buf head = DL_BUF_INIT;
	struct dl_header h = {0};
	int code;

	dl_buf_reserve_exact(&head, (size_t)d->head_size);
	head.len = (size_t)d->head_size;
	code = take_head(i, &head, &h, e);
	if (!code)
		want_data(i);
	dl_header_release(&h);
	dl_buf_free(&head);
	return code;
}

static int check_tensor(
	struct intake *i, const struct dl_tensor *t, struct dl_err *e)
{
	static unsigned char block[1 << 20];
	unsigned width = dl_dtype_bits(t->dtype) / 8;
	char name[80];

	for (uint64_t at = 0; at < t->size; at += sizeof block) {
		size_t n = t->size - at < sizeof block ? (size_t)(t->size - at)
						       : sizeof block;

		if (read_at(i->fd, block, n, i->data_at + t->offset + at, e))
			return e->code;
		if (!dl_is_finite(block, t->dtype, n / width))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" holds infinity or no number",
				dl_scrub(name, sizeof name, t->name.s,
					t->name.n));
	}
	return 0;
}

static int check_group(struct intake *i, size_t k, struct dl_err *e)
{
	const struct dl_groups *g = &i->groups;
	uint64_t bytes = 0;

	for (size_t at = g->first[k]; at < g->first[k + 1]; at++) {
		const struct dl_tensor *t = &i->header.tensor[g->member[at]];

		bytes += t->size;
		if (dl_dtype_is_float(t->dtype) && check_tensor(i, t, e))
			return e->code;
	}
	i->got += bytes;
	i->whole[k] = 1;
	if (k < i->layout->fragments)
		i->version[k] = i->donor.version[k];
	if (i->clock < i->donor.clock)
		i->clock = i->donor.clock;
	return 0;
}

static int on_data(struct intake *i, struct dl_err *e)
{
	struct intake_donor *d = &i->donor;
	size_t ranges = take_whole_ranges(&d->take);

	for (; d->group < i->groups.groups && d->end[d->group] <= ranges;
		d->group++)
		if (!i->whole[d->group] && check_group(i, d->group, e))
			return e->code;
	return 0;
}

/* What is whole by now leads to more. */
static int proceed(struct intake *i, struct dl_err *e)
{
	struct intake_donor *d = &i->donor;
	int code = 0;

	if (d->at == INTAKE_SIZE && take_whole_ranges(&d->take) == 1)
		code = on_size(i, e);
	else if (d->at == INTAKE_HEAD && take_whole_ranges(&d->take) == 2)
		code = on_head(i, e);
	if (!code && d->at == INTAKE_DATA)
		code = on_data(i, e);
	return code;
}

int intake_part(struct intake *i, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, struct dl_err *e)
{
	int code = take_part(&i->donor.take, c, m, e);

	i->fetched += h->data_size;
	if (!code)
		code = proceed(i, e);
	if (!code)
		take_ask(&i->donor.take, c);
	return code;
}

int intake_is_whole(const struct intake *i)
{
	return i->groups.groups && i->got == i->bytes &&
	       !memchr(i->whole, 0, i->groups.groups);
}

int intake_finish(struct intake *i, struct dl_err *e)
{
	struct dl_buf head = DL_BUF_INIT;
	unsigned char length[LENGTH];
	int bad;

	dl_put_le64(length, i->data_at - LENGTH);
	dl_buf_add(&head, length, LENGTH);
	dl_buf_add(&head, i->head.data, i->head.len);
	while (head.len < i->data_at)
		dl_buf_byte(&head, ' ');
	bad = lseek(i->fd, 0, SEEK_SET) ||
	      dl_write_full(i->fd, head.data, head.len) ||
	      ftruncate(i->fd, (off_t)(i->data_at + i->header.data_size));
	dl_buf_free(&head);
	return bad ? dl_fail_sys(e, DL_IOERR, "writing the state") : 0;
}
