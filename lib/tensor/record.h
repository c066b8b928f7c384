/*
 * Records: complete safetensors files, one after another on any byte stream
 * (dl-fragment(5)). A strict, push-style reader and a canonical writer.
 */
#ifndef DL_TENSOR_RECORD_H
#define DL_TENSOR_RECORD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "tensor/dtype.h"

struct dl_string {
	const char *s; /* NUL-terminated past n; may hold NUL itself */
	size_t n;
};

/* Byte order: <0, 0 or >0. */
static inline int dl_string_compare(const struct dl_string *a,
	const struct dl_string *b)
{
	int order = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);

	return order ? order : (a->n > b->n) - (a->n < b->n);
}

struct dl_tensor {
	struct dl_string name;
	enum dl_dtype dtype;
	unsigned rank;
	const uint64_t *shape; /* rank of them */
	uint64_t elements;     /* product of shape; 1 for rank 0 */
	uint64_t offset, size; /* bytes in the record's data */
};

/* A parsed header. Strings and shapes are owned by it. */
struct dl_header {
	struct dl_tensor *tensor; /* by offset, then by size */
	size_t tensors;
	struct dl_string (*meta)[2]; /* key, value; in byte order of keys */
	size_t metas;
	uint64_t header_size; /* bytes of the JSON, padding included */
	uint64_t data_size;
	void *memory; /* private */
};

/*
 * Parses the JSON of a header (without the 8 length bytes). data_size is what
 * the tensors cover: offsets are checked to be inside 64 bits, without overlap
 * or hole, starting at 0. 65 names tensor and fact, and h then holds nothing.
 *
 * Memory: on top of json, tensors that are refused cost at most n bytes. What
 * is accepted costs at most 6 n in the worst case (metadata of empty strings);
 * per tensor 60 bytes, its name, and 8 bytes a dimension.
 */
int dl_header_parse(struct dl_header *h, const void *json, size_t n,
	struct dl_err *e);
void dl_header_release(struct dl_header *h);

/* The tensor of that name, or NULL. */
const struct dl_tensor *dl_header_find(const struct dl_header *h,
	const char *name, size_t n);
/* The value of a metadata key ("dl.kind"), or NULL. */
const struct dl_string *dl_header_meta(const struct dl_header *h,
	const char *key);
/* The same of a key that may hold NUL. */
const struct dl_string *dl_header_meta_find(
	const struct dl_header *h, const char *key, size_t n);
/* A metadata value as an integer: 65 when it is absent or not one. */
int dl_header_meta_u64(const struct dl_header *h, const char *key,
	uint64_t *out, struct dl_err *e);

/* Limits on what a stranger may announce, checked before any allocation. */
struct dl_limits {
	uint64_t header; /* bytes of JSON */
	uint64_t data;   /* bytes of data; UINT64_MAX for no limit */
};
#define DL_LIMITS_CONTROL {65536, 1 << 20}
#define DL_LIMITS_FILE {100000000, UINT64_MAX}

/*
 * Push-style reader of one record after another. Feed bytes as they come, and
 * feed on (with n = 0 too) until it says DL_READER_MORE; it stops at each
 * event, having taken some of them:
 *   DL_READER_MORE    all bytes taken, nothing more to tell
 *   DL_READER_HEADER  r->header is parsed; now is the time to set r->dest
 *   DL_READER_RECORD  the record is complete; feeding on starts the next one,
 *                     and r->header stays valid until then
 *   DL_READER_BAD     refused; e says why
 */
enum dl_reader_event {
	DL_READER_MORE,
	DL_READER_HEADER,
	DL_READER_RECORD,
	DL_READER_BAD
};

struct dl_reader {
	struct dl_header header;
	/*
	 * Where data goes, a tensor: dest[i] is memory for tensor[i].size
	 * bytes, or NULL to pass it to block, or, without block, to skip it.
	 * The array is made by the reader, all NULL, before DL_READER_HEADER.
	 */
	void **dest;
	/* Called with bytes of tensor i from byte offset at of it; may be
	 * NULL; not 0 stops the reader with that code. */
	int (*block)(void *ctx, size_t i, uint64_t at, const void *p,
		size_t n, struct dl_err *e);
	void *ctx;
	uint64_t record;  /* index of the current record, from 0 */
	/* private */
	struct dl_limits limits;
	int state;
	struct dl_buf head;
	uint64_t at;      /* data bytes taken of this record */
	size_t current;   /* tensor that byte belongs to */
};

/* The 8 bytes that announce a header: 65 when it is longer than limit, or when
 * they are text, as of something that is no record. */
int dl_header_check_length(
	const void *bytes, uint64_t limit, struct dl_err *e);

/* The fact about a zstd frame that begins where a record should. */
#define DL_RECORD_MIXED "compressed by zstd, unlike what comes before it"

void dl_reader_init(struct dl_reader *r, struct dl_limits limits);
void dl_reader_release(struct dl_reader *r);
enum dl_reader_event dl_reader_feed(struct dl_reader *r, const void *p,
	size_t n, size_t *taken, struct dl_err *e);
/* As fed with n bytes, all inside the data of a record, that the caller has put
 * where they go. */
enum dl_reader_event dl_reader_placed(struct dl_reader *r, size_t n);
/* At the end of input: 65 when it ends inside a record, naming where. */
int dl_reader_end(struct dl_reader *r, struct dl_err *e);

/*
 * A whole record in memory, for messages and small files: header plus its
 * data. Points into bytes, which it does not own.
 */
struct dl_record {
	struct dl_header header;
	const unsigned char *data;
};
/* n must be the whole record: trailing bytes are refused. e lacks the place. */
int dl_record_parse(struct dl_record *r, const void *bytes, size_t n,
	struct dl_limits limits, struct dl_err *e);
void dl_record_release(struct dl_record *r);

/*
 * Canonical writer: the same content gives the same bytes. Metadata in byte
 * order of keys; tensors by dtype, the last of enum dl_dtype first, then in
 * byte order of names (as the reference writer does, so that wide elements are
 * aligned); header padded with spaces to a multiple of 8. Names, keys and
 * values are valid UTF-8, no two the same, and no tensor is "__metadata__":
 * that is the caller's care.
 */
struct dl_writer {
	struct dl_buf names; /* private from here */
	struct dl_buf entries, metas;
	size_t tensors;
};
#define DL_WRITER_INIT {DL_BUF_INIT, DL_BUF_INIT, DL_BUF_INIT, 0}

void dl_writer_meta(struct dl_writer *w, const char *key, const char *value);
void dl_writer_meta_n(struct dl_writer *w, const char *key,
	const char *value, size_t n);
/* The same of a key that may hold NUL. */
void dl_writer_meta_pair(struct dl_writer *w, const void *key, size_t key_n,
	const void *value, size_t value_n);
void dl_writer_meta_u64(struct dl_writer *w, const char *key, uint64_t value);
/* Adds a tensor; returns its handle (0, 1, ... in order of adding). */
size_t dl_writer_tensor(struct dl_writer *w, const char *name, size_t n,
	enum dl_dtype dtype, unsigned rank, const uint64_t *shape);
/* A tensor's name, until the next one is added. */
struct dl_string dl_writer_name(const struct dl_writer *w, size_t handle);
/* Adds what another writer has: a tensor by its handle, or all metadata. */
size_t dl_writer_copy_tensor(
	struct dl_writer *w, const struct dl_writer *from, size_t handle);
void dl_writer_copy_metas(struct dl_writer *w, const struct dl_writer *from);
/*
 * Ends the header: appends length and JSON to out. order, when not NULL, gets
 * a handle a tensor in the order in which their data must follow.
 */
void dl_writer_finish(struct dl_writer *w, struct dl_buf *out, size_t *order);
void dl_writer_release(struct dl_writer *w);

#endif
