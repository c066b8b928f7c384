/* Random records through the canonical writer and the push-style reader, fed
 * in pieces of any size. */
#include "tensor/record.h"

#include <string.h>

#include "base/rng.h"

#include "../tap.h"

enum { MAX_TENSORS = 12, MAX_RANK = 4, MAX_NAME = 24 };

struct made {
	char name[MAX_TENSORS][MAX_NAME];
	size_t name_n[MAX_TENSORS];
	enum dl_dtype dtype[MAX_TENSORS];
	unsigned rank[MAX_TENSORS];
	uint64_t shape[MAX_TENSORS][MAX_RANK];
	size_t tensors, order[MAX_TENSORS];
	struct dl_buf bytes; /* records, one after another */
};

static struct dl_rng rng = {1, 0};

static const char *const odd_names[] = {"", "../../etc/passwd", "a\"b\\c",
	"\n\t\x01", "\xc3\xa9\xf0\x9f\x98\x80", "with space", "__metadata_",
	"\x7f", "/", "{\"dtype\":\"F32\"}"};

static void make_name(struct made *m, size_t i)
{
	uint64_t pick = dl_rng_below(&rng, 14);
	const char *from = pick < 10 ? odd_names[pick] : "w";
	int n = snprintf(m->name[i], MAX_NAME, "%s", from);

	/* NUL and a number make it unique. */
	if (i || pick >= 10)
		n += 1 + snprintf(m->name[i] + n + 1,
				 (size_t)(MAX_NAME - n) - 1, "%zu", i);
	m->name_n[i] = (size_t)n;
}

static void make_shape(struct made *m, size_t i)
{
	m->dtype[i] = (enum dl_dtype)dl_rng_below(&rng, DL_DTYPES);
	m->rank[i] = (unsigned)dl_rng_below(&rng, MAX_RANK + 1);
	for (unsigned d = 0; d < m->rank[i]; d++)
		m->shape[i][d] = dl_rng_below(&rng, 5);
	if (dl_dtype_bits(m->dtype[i]) % 8) { /* whole bytes */
		m->rank[i] = m->rank[i] ? m->rank[i] : 1;
		m->shape[i][0] *= 4;
	}
}

/* Appends a record of random tensors to m's bytes. */
static void make_record(struct made *m, int canonical_again)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_header h;
	struct dl_err e;
	size_t start = m->bytes.len;

	for (size_t k = 0; k < m->tensors; k++) {
		size_t i = canonical_again ? m->tensors - 1 - k : k;

		dl_writer_tensor(&w, m->name[i], m->name_n[i], m->dtype[i],
			m->rank[i], m->shape[i]);
	}
	dl_writer_meta_u64(&w, "dl.seq", UINT64_MAX);
	dl_writer_meta(&w, "", "empty \"key\"");
	dl_writer_meta_n(&w, "dl.kind", "pa\0rams", 7);
	dl_writer_finish(&w, &m->bytes, m->order);
	dl_writer_release(&w);
	if (dl_header_parse(&h, m->bytes.data + start + 8,
		    m->bytes.len - start - 8, &e)) {
		ok(0, "our own header: %s", e.text);
		return;
	}
	for (uint64_t i = 0; i < h.data_size; i++)
		dl_buf_byte(&m->bytes, (int)(dl_rng_at(2, i) & 255));
	dl_header_release(&h);
}

static void make(struct made *m)
{
	dl_buf_clear(&m->bytes);
	m->tensors = dl_rng_below(&rng, MAX_TENSORS + 1);
	for (size_t i = 0; i < m->tensors; i++) {
		make_name(m, i);
		make_shape(m, i);
	}
	make_record(m, 0);
}

/* Counts what differs between the header and what was written. */
static int header_differs(const struct made *m, const struct dl_header *h)
{
	const struct dl_string *kind = dl_header_meta(h, "dl.kind");
	uint64_t seq = 0, at = 0;
	int wrong = h->tensors != m->tensors || h->metas != 3;

	wrong += !kind || kind->n != 7 || memcmp(kind->s, "pa\0rams", 8);
	wrong += dl_header_meta_u64(h, "dl.seq", &seq, NULL) != 0;
	wrong += seq != UINT64_MAX || dl_header_meta(h, "dl.") != NULL;
	wrong += dl_header_find(h, "w", 1) != NULL;
	for (size_t i = 0; !wrong && i < m->tensors; i++) {
		size_t k = m->order[i];
		const struct dl_tensor *t =
			dl_header_find(h, m->name[k], m->name_n[k]);

		if (!t)
			return 1;
		wrong += t->offset != at || t->name.n != m->name_n[k] ||
			 memcmp(t->name.s, m->name[k], t->name.n + 1) != 0;
		wrong += t->dtype != m->dtype[k] || t->rank != m->rank[k];
		wrong += memcmp(t->shape, m->shape[k],
				 t->rank * sizeof *t->shape) != 0;
		at += t->size;
	}
	return wrong;
}

struct sink {
	unsigned char *data;
	const struct dl_header *h;
};

static int take(void *ctx, size_t i, uint64_t at, const void *p, size_t n,
	struct dl_err *e)
{
	struct sink *s = ctx;

	(void)e;
	memcpy(s->data + s->h->tensor[i].offset + at, p, n);
	return 0;
}

/* The size of the next piece: a byte, a few, or much. */
static size_t piece(int one_byte, size_t left)
{
	size_t n = one_byte ? 1 : 1 + dl_rng_below(&rng, 300);

	return n < left ? n : left;
}

/* Reads the records of m in pieces; how many, or -1 when one differs. */
static int read_back(const struct made *m, int one_byte, struct dl_err *e)
{
	struct dl_limits limits = DL_LIMITS_FILE;
	struct dl_reader r;
	struct sink s = {NULL, &r.header};
	const unsigned char *p = m->bytes.data, *data;
	size_t left = m->bytes.len, n, taken, record = left;
	enum dl_reader_event ev = DL_READER_MORE;
	int count = 0, differs = 0;

	dl_reader_init(&r, limits);
	r.block = take;
	r.ctx = &s;
	while (ev != DL_READER_BAD && (left || ev != DL_READER_MORE)) {
		n = piece(one_byte, left);
		ev = dl_reader_feed(&r, p, n, &taken, e);
		p += taken;
		left -= taken;
		if (ev == DL_READER_HEADER) {
			differs += header_differs(m, &r.header);
			s.data = dl_alloc(r.header.data_size);
			record = left;
			for (size_t i = 0; i < r.header.tensors; i += 2)
				r.dest[i] = s.data + r.header.tensor[i].offset;
		} else if (ev == DL_READER_RECORD) {
			data = m->bytes.data + (m->bytes.len - record);
			differs +=
				memcmp(s.data, data, r.header.data_size) != 0;
			differs += r.record != (uint64_t)count++;
			free(s.data);
		}
	}
	if (ev == DL_READER_BAD || dl_reader_end(&r, e))
		differs++;
	dl_reader_release(&r);
	return differs ? -1 : count;
}

static void test_round_trip(void)
{
	struct made m = {.tensors = 0};
	struct dl_err e = {.text = "differs"};
	struct dl_buf again = DL_BUF_INIT;
	int wrong = 0, order = 0;

	for (int i = 0; i < 300; i++) {
		make(&m);
		dl_buf_clear(&again);
		dl_buf_add(&again, m.bytes.data, m.bytes.len);
		dl_buf_clear(&m.bytes);
		make_record(&m, 1);
		order += m.bytes.len != again.len ||
			 memcmp(m.bytes.data, again.data, again.len) != 0;
		dl_buf_clear(&m.bytes);
		make_record(&m, 0);
		make_record(&m, 0);
		make_record(&m, 0);
		wrong += read_back(&m, i % 10 == 0, &e) != 3;
	}
	ok(!wrong, "300 streams of 3 records read back: %s",
		wrong ? e.text : "same");
	ok(!order, "the order of adding does not show");
	dl_buf_free(&m.bytes);
	dl_buf_free(&again);
}

/* The reference writer's bytes for two tensors and a pair. */
static void test_canonical(void)
{
	static const char want[] =
		"{\"__metadata__\":{\"dl.format\":\"1\"},"
		"\"c\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
		"\"a\":{\"dtype\":\"F16\",\"shape\":[0,3],"
		"\"data_offsets\":[4,4]},"
		"\"b\":{\"dtype\":\"F16\",\"shape\":[2],"
		"\"data_offsets\":[4,8]}}";
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf b = DL_BUF_INIT;
	size_t order[3], n = sizeof want - 1;

	dl_writer_tensor(&w, "b", 1, DL_F16, 1, (uint64_t[]){2});
	dl_writer_tensor(&w, "a", 1, DL_F16, 2, (uint64_t[]){0, 3});
	dl_writer_tensor(&w, "c", 1, DL_F32, 0, NULL);
	dl_writer_meta(&w, "dl.format", "1");
	dl_writer_finish(&w, &b, order);
	ok(b.len % 8 == 0 && dl_le64(b.data) == b.len - 8 && b.len - 8 >= n &&
			b.len - 8 < n + 8 && !memcmp(b.data + 8, want, n),
		"canonical: %.*s", (int)b.len - 8, (char *)b.data + 8);
	ok(order[0] == 2 && order[1] == 1 && order[2] == 0, "order of data");
	dl_writer_release(&w);
	dl_buf_free(&b);
}

static int parse(struct dl_record *r, const char *header, const char *data,
	size_t n, struct dl_err *e)
{
	struct dl_limits limits = DL_LIMITS_FILE;
	static unsigned char bytes[4096];

	dl_put_le64(bytes, strlen(header));
	memcpy(bytes + 8, header, strlen(header));
	memcpy(bytes + 8 + strlen(header), data, n);
	return dl_record_parse(r, bytes, 8 + strlen(header) + n, limits, e);
}

/* What the reference reader takes beyond the plain form. */
static void test_tolerant(void)
{
	static const char *const takes[] = {
		"{}",
		" \n{}   ",
		"{\"__metadata__\":{}}",
		"{\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}",
		"{\"\\u0000\":{\"data_offsets\":[0,1],\"dtype\":\"U8\","
		"\"x\":[{\"y\":1}],\"shape\":[1]}}",
		"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"
		","
		"\"../b\":{\"dtype\":\"F32\",\"shape\":[1,1],"
		"\"data_offsets\":[1,5]}}",
		"{\"a\":{\"dtype\":\"F32\",\"shape\":[0,18446744073709551615,"
		"18446744073709551615],\"data_offsets\":[0,0]}}",
		"{\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}"
		","
		"\"a\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[1,1]}"
		","
		"\"c\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[0,0]}"
		"}",
		"{\"a\":{\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]}"
		"}",
	};
	static const uint64_t size[] = {0, 0, 0, 1, 1, 5, 0, 1, 1};
	struct dl_record r;
	struct dl_err e;

	for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
		int code = parse(&r, takes[i], "12345", size[i], &e);

		ok(!code, "takes %s%s%s",
			takes[i][1] == '\n' ? "space" : takes[i],
			code ? ": " : "", code ? e.text : "");
		if (!code)
			dl_record_release(&r);
	}
}

static void test_end(void)
{
	static const char in[] = "\x02\0\0\0\0\0\0\0{}\x02\0";
	struct dl_limits limits = DL_LIMITS_CONTROL;
	struct dl_reader r;
	struct dl_err e = {0};
	size_t taken, at;

	dl_reader_init(&r, limits);
	ok(!dl_reader_end(&r, &e), "no record at all is an end");
	ok(dl_reader_feed(&r, in, 12, &taken, &e) == DL_READER_HEADER &&
			taken == 10,
		"header");
	at = taken;
	ok(dl_reader_feed(&r, in + at, 2, &taken, &e) == DL_READER_RECORD &&
			taken == 0 && !dl_reader_end(&r, &e),
		"record");
	ok(dl_reader_feed(&r, in + at, 2, &taken, &e) == DL_READER_MORE &&
			taken == 2,
		"the next one begins");
	ok(dl_reader_end(&r, &e) == DL_DATA &&
			!strcmp(e.text, "record 1: ends inside a header's "
					"length"),
		"and is cut: %s", e.text);
	dl_reader_release(&r);
}

int main(void)
{
	test_canonical();
	test_round_trip();
	test_tolerant();
	test_end();
	return done_testing();
}
