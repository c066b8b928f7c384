/*
 * Any bytes through the record reader, whole and in pieces, which must agree;
 * what is one valid record survives the canonical writer.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tensor/record.h"

static const struct dl_limits limits = DL_LIMITS_CONTROL;

/* Reads a stream in pieces of size piece; records read, or -1 when refused. */
static int read_stream(const uint8_t *data, size_t n, size_t piece)
{
	struct dl_err e = {0};
	struct dl_reader r;
	enum dl_reader_event ev = DL_READER_MORE;
	size_t taken, part;
	int records = 0;

	dl_reader_init(&r, limits);
	while (ev != DL_READER_BAD && (n || ev != DL_READER_MORE)) {
		part = n < piece ? n : piece;
		ev = dl_reader_feed(&r, data, part, &taken, &e);
		if (taken > part)
			abort();
		data += taken;
		n -= taken;
		records += ev == DL_READER_RECORD;
	}
	if (ev == DL_READER_BAD || dl_reader_end(&r, &e)) {
		if (e.code != DL_DATA || !e.text[0])
			abort();
		records = -1;
	}
	dl_reader_release(&r);
	return records;
}

static void write_again(const struct dl_header *h, struct dl_buf *out)
{
	struct dl_writer w = DL_WRITER_INIT;

	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = h->tensor + i;

		dl_writer_tensor(
			&w, t->name.s, t->name.n, t->dtype, t->rank, t->shape);
	}
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
}

/* The canonical header parses to the same tensors, and is its own canon. */
static void check_canon(const struct dl_header *h)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;
	struct dl_header again;

	write_again(h, &once);
	if (dl_header_parse(&again, once.data + 8, once.len - 8, NULL) ||
		again.tensors != h->tensors || again.data_size != h->data_size)
		abort();
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *a = h->tensor + i, *b;

		b = dl_header_find(&again, a->name.s, a->name.n);
		if (!b || b->size != a->size || b->dtype != a->dtype ||
			b->rank != a->rank || b->elements != a->elements)
			abort();
	}
	write_again(&again, &twice);
	if (once.len != twice.len ||
		memcmp(once.data, twice.data, once.len) != 0)
		abort();
	dl_header_release(&again);
	dl_buf_free(&once);
	dl_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_record r;
	int whole = read_stream(data, n, n ? n : 1);
	int code = dl_record_parse(&r, data, n, limits, &e);

	if (read_stream(data, n, 1) != whole ||
		read_stream(data, n, 7) != whole)
		abort();
	if ((code == 0) != (whole == 1))
		abort();
	if (code && (code != DL_DATA || !e.text[0]))
		abort();
	if (!code) {
		check_canon(&r.header);
		dl_record_release(&r);
	}
	return 0;
}
