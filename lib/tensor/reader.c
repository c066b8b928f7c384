#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/input.h"
#include "tensor/record.h"

enum { IN_LENGTH, IN_HEADER, IN_DATA, AT_END, REFUSED };

enum {
	LENGTH_BYTES = 8,
	/* A header's buffer is at most this much ahead of the bytes that came,
	 * so that announcing much costs a stranger as much. */
	HEADER_STEP = 1 << 20,
	NAME_SHOWN = 120
};

void dl_reader_init(struct dl_reader *r, struct dl_limits limits)
{
	*r = (struct dl_reader){.limits = limits, .state = IN_LENGTH};
}

static void drop_record(struct dl_reader *r)
{
	dl_header_release(&r->header);
	free(r->dest);
	r->dest = NULL;
}

void dl_reader_release(struct dl_reader *r)
{
	drop_record(r);
	dl_buf_free(&r->head);
}

static enum dl_reader_event refuse(struct dl_reader *r, struct dl_err *e)
{
	dl_at(e, "record %" PRIu64, r->record);
	r->state = REFUSED;
	return DL_READER_BAD;
}

static int check_limit(
	const char *what, uint64_t n, uint64_t limit, struct dl_err *e)
{
	if (n <= limit)
		return 0;
	return dl_fail(e, DL_DATA,
		"%s %" PRIu64 " bytes, more than the %" PRIu64 " allowed", what,
		n, limit);
}

int dl_header_check_length(const void *bytes, uint64_t limit, struct dl_err *e)
{
	const unsigned char *c = bytes;
	uint64_t n = dl_le64(bytes);
	int i = 0;

	while (i < LENGTH_BYTES && c[i] >= ' ' && c[i] <= '~')
		i++;
	if (n > limit && i == LENGTH_BYTES)
		return dl_fail(e, DL_DATA,
			"begins with the text \"%.8s\", not with a header's "
			"length",
			(const char *)bytes);
	return check_limit("header claims", n, limit, e);
}

static int past_end(const char *what, uint64_t n, struct dl_err *e)
{
	return dl_fail(
		e, DL_DATA, "%s %" PRIu64 " bytes past the end", what, n);
}

static int inside_length(struct dl_err *e)
{
	return dl_fail(e, DL_DATA, "ends inside a header's length");
}

/* Takes bytes into head until it holds want of them; how many. */
static size_t gather(
	struct dl_buf *head, uint64_t want, const void *p, size_t n)
{
	uint64_t lack = want - head->len;

	if (n > lack)
		n = (size_t)lack;
	if (head->len + n > head->cap)
		dl_buf_reserve_exact(head, lack < HEADER_STEP + n
						   ? (size_t)lack
						   : HEADER_STEP + n);
	dl_buf_add(head, p, n);
	return n;
}

static int take_length(struct dl_reader *r, struct dl_err *e)
{
	uint64_t n = dl_le64(r->head.data);
	int code;

	if (r->record && dl_input_is_zstd(r->head.data, r->head.len))
		return dl_fail(e, DL_DATA, DL_RECORD_MIXED);
	code = dl_header_check_length(
		r->head.data, r->limits.header, e);
	if (code)
		return code;
	dl_buf_clear(&r->head);
	r->header.header_size = n;
	r->state = IN_HEADER;
	return 0;
}

static int take_header(struct dl_reader *r, struct dl_err *e)
{
	int code = dl_header_parse(&r->header, r->head.data, r->head.len, e);

	if (!code)
		code = check_limit(
			"data", r->header.data_size, r->limits.data, e);
	if (code)
		return code;
	dl_buf_free(&r->head);
	r->dest = dl_alloc_array(r->header.tensors, sizeof *r->dest);
	r->at = 0;
	r->current = 0;
	r->state = IN_DATA;
	return 0;
}

/* Hands on bytes of the data, tensor by tensor. */
static int take_data(
	struct dl_reader *r, const unsigned char *p, size_t n, struct dl_err *e)
{
	while (n) {
		const struct dl_tensor *t = r->header.tensor + r->current;
		uint64_t at = r->at - t->offset;
		size_t part = t->size - at < n ? (size_t)(t->size - at) : n;
		void *dest = r->dest[r->current];
		int code = 0;

		if (part && dest)
			memcpy((unsigned char *)dest + at, p, part);
		else if (part && r->block)
			code = r->block(r->ctx, r->current, at, p, part, e);
		if (code)
			return code;
		p += part;
		n -= part;
		r->at += part;
		if (r->at == t->offset + t->size)
			r->current++;
	}
	return 0;
}

static void next_record(struct dl_reader *r)
{
	drop_record(r);
	r->record++;
	r->state = IN_LENGTH;
}

static enum dl_reader_event feed_data(struct dl_reader *r, const void *p,
	size_t n, size_t *taken, struct dl_err *e)
{
	uint64_t lack = r->header.data_size - r->at;

	*taken = n < lack ? n : (size_t)lack;
	if (take_data(r, p, *taken, e))
		return refuse(r, e);
	if (r->at < r->header.data_size)
		return DL_READER_MORE;
	r->state = AT_END;
	return DL_READER_RECORD;
}

enum dl_reader_event dl_reader_placed(struct dl_reader *r, size_t n)
{
	const struct dl_tensor *t = r->header.tensor;

	r->at += n;
	while (r->current < r->header.tensors &&
		t[r->current].offset + t[r->current].size <= r->at)
		r->current++;
	if (r->at < r->header.data_size)
		return DL_READER_MORE;
	r->state = AT_END;
	return DL_READER_RECORD;
}

enum dl_reader_event dl_reader_feed(struct dl_reader *r, const void *p,
	size_t n, size_t *taken, struct dl_err *e)
{
	const unsigned char *from = p;
	size_t part;

	*taken = 0;
	if (r->state == REFUSED)
		return DL_READER_BAD;
	if (r->state == IN_DATA)
		return feed_data(r, p, n, taken, e);
	if (!n)
		return DL_READER_MORE;
	if (r->state == AT_END)
		next_record(r);
	if (r->state == IN_LENGTH) {
		*taken = gather(&r->head, LENGTH_BYTES, from, n);
		if (r->head.len < LENGTH_BYTES)
			return DL_READER_MORE;
		if (take_length(r, e))
			return refuse(r, e);
	}
	part = gather(
		&r->head, r->header.header_size, from + *taken, n - *taken);
	*taken += part;
	if (r->head.len < r->header.header_size)
		return DL_READER_MORE;
	if (take_header(r, e))
		return refuse(r, e);
	return DL_READER_HEADER;
}

/* Names the first tensor whose data are not complete. */
static void data_past_end(const struct dl_reader *r, struct dl_err *e)
{
	const struct dl_tensor *t = r->header.tensor + r->current;
	char shown[NAME_SHOWN];

	while (t->offset + t->size == r->at)
		t++;
	past_end("data end", r->header.data_size - r->at, e);
	dl_at(e, "tensor \"%s\"",
		dl_scrub(shown, sizeof shown, t->name.s, t->name.n));
}

int dl_reader_end(struct dl_reader *r, struct dl_err *e)
{
	switch (r->state) {
	case IN_LENGTH:
		if (!r->head.len)
			return 0;
		inside_length(e);
		break;
	case IN_HEADER:
		past_end("header claims", r->header.header_size - r->head.len,
			e);
		break;
	case IN_DATA:
		if (r->at == r->header.data_size)
			return 0;
		data_past_end(r, e);
		break;
	case AT_END:
		return 0;
	default:
		return DL_DATA;
	}
	dl_at(e, "record %" PRIu64, r->record);
	return DL_DATA;
}

/* The data must be what follows the header, no less and no more. */
static int check_data(const struct dl_header *h, uint64_t follow,
	uint64_t limit, struct dl_err *e)
{
	int code = check_limit("data take", h->data_size, limit, e);

	if (code)
		return code;
	if (h->data_size > follow)
		return past_end("data end", h->data_size - follow, e);
	if (h->data_size < follow)
		return dl_fail(e, DL_DATA, "%" PRIu64 " bytes follow the data",
			follow - h->data_size);
	return 0;
}

int dl_record_parse(struct dl_record *r, const void *bytes, size_t n,
	struct dl_limits limits, struct dl_err *e)
{
	const unsigned char *p = bytes;
	uint64_t header, follow;
	int code;

	*r = (struct dl_record){.data = NULL};
	if (n < LENGTH_BYTES)
		return inside_length(e);
	header = dl_le64(p);
	follow = n - LENGTH_BYTES;
	code = dl_header_check_length(p, limits.header, e);
	if (code)
		return code;
	if (header > follow)
		return past_end("header claims", header - follow, e);
	follow -= header;
	p += LENGTH_BYTES;
	code = dl_header_parse(&r->header, p, (size_t)header, e);
	if (code)
		return code;
	code = check_data(&r->header, follow, limits.data, e);
	if (code)
		dl_header_release(&r->header);
	else
		r->data = p + header;
	return code;
}

void dl_record_release(struct dl_record *r)
{
	dl_header_release(&r->header);
	r->data = NULL;
}
