#include "tensor/owed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "tensor/emit.h"
#include "tensor/encode_values.h"

/* Whose error it is. */
static const char *const keys[] = {
	"dl.fragment", "dl.layout", "dl.learner", "dl.run"};
enum { KEYS = sizeof keys / sizeof *keys };

/* The record that is made. */
struct making {
	const struct dl_encode *n;
	const struct dl_tensor **tensor; /* by handle */
};

struct piece {
	struct encode_source s;
	uint64_t at; /* element */
	unsigned char *out;
};

static int owe_chunk(void *ctx, uint64_t at, size_t n, struct dl_err *e)
{
	const struct piece *p = ctx;
	struct encode_chunk c;
	int rc = encode_do(&p->s, p->at + at, n, &c, e);

	if (rc)
		return rc;
	encode_restore(&p->s, n, &c);
	for (size_t i = 0; i < n; i++)
		c.value[i] -= c.restored[i];
	dl_from_f32(p->out + at * sizeof(float), c.value, DL_F32, n);
	return 0;
}

static int fill_owed(void *ctx, size_t handle, uint64_t at, void *block,
	size_t n, struct dl_err *e)
{
	const struct making *k = ctx;
	struct piece p = {.at = at / sizeof(float), .out = block};

	encode_source_init(&p.s, k->n, k->tensor[handle]);
	return dl_chunks(k->n->pool, n / sizeof(float), owe_chunk, &p, e);
}

static void describe_owed(struct dl_writer *w, const struct dl_header *h)
{
	dl_writer_meta(w, "dl.format", "1");
	dl_writer_meta(w, "dl.kind", "error");
	for (size_t i = 0; i < KEYS; i++) {
		const struct dl_string *v = dl_header_meta(h, keys[i]);

		if (v)
			dl_writer_meta_n(w, keys[i], v->s, v->n);
	}
}

int dl_owed_write(
	const struct dl_encode *n, struct dl_output *o, struct dl_err *e)
{
	const struct dl_header *h = encode_header(n);
	struct making k = {
		.n = n, .tensor = dl_alloc_array(h->tensors, sizeof *k.tensor)};
	struct dl_writer w = DL_WRITER_INIT;
	uint64_t *size = dl_alloc_array(h->tensors, sizeof *size);
	int rc;

	describe_owed(&w, h);
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[i];
		size_t handle;

		if (!dl_dtype_is_float(t->dtype))
			continue;
		handle = dl_writer_tensor(
			&w, t->name.s, t->name.n, DL_F32, t->rank, t->shape);
		k.tensor[handle] = t;
		size[handle] = t->elements * sizeof(float);
	}
	rc = dl_emit(o, &w, size, fill_owed, &k, e);
	free(k.tensor);
	free(size);
	return rc;
}

int dl_owed_open(struct dl_records *owed, const char *path, struct dl_err *e)
{
	int rc;

	*owed = (struct dl_records)DL_RECORDS_INIT;
	if (access(path, F_OK) && errno == ENOENT)
		return 0;
	rc = dl_records_open(owed, path, e);
	for (size_t i = 0; !rc && i < owed->records; i++) {
		const struct dl_string *kind =
			dl_header_meta(&owed->record[i].header, "dl.kind");

		if (!kind || strcmp(kind->s, "error") != 0)
			rc = dl_fail(e, DL_DATA,
				"%s: record %zu is not of kind \"error\"", path,
				i);
	}
	return rc;
}

static int same_meta(
	const struct dl_header *a, const struct dl_header *b, const char *key)
{
	const struct dl_string *x = dl_header_meta(a, key);
	const struct dl_string *y = dl_header_meta(b, key);

	return x && y ? !dl_string_compare(x, y) : !x && !y;
}

int dl_owed_same_fragment(const struct dl_header *a, const struct dl_header *b)
{
	return same_meta(a, b, "dl.fragment");
}

int dl_owed_find(const struct dl_records *owed, const struct dl_header *h,
	size_t *record, struct dl_err *e)
{
	for (size_t i = 0; i < owed->records; i++) {
		const struct dl_header *o = &owed->record[i].header;

		if (!dl_owed_same_fragment(o, h))
			continue;
		*record = i;
		for (size_t k = 0; k < KEYS; k++)
			if (!same_meta(o, h, keys[k]))
				return dl_fail(e, DL_DATA,
					"%s: record %zu is of another %s",
					owed->path, i, keys[k]);
		return 1;
	}
	return 0;
}
