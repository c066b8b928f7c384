#include "tensor/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "tensor/chunks.h"
#include "tensor/decode.h"
#include "tensor/shards.h"

enum { BLOCK = 1 << 16 };

static int compare(const void *a, const void *b)
{
	const struct dl_model_tensor *x = a, *y = b;

	return dl_string_compare(&x->info.name, &y->info.name);
}

static struct dl_records *new_file(struct dl_model *m)
{
	m->file = dl_resize(m->file, m->files + 1, sizeof *m->file);
	return &m->file[m->files++];
}

int dl_model_add_fd(struct dl_model *m, const char *name, int fd,
	struct dl_err *e)
{
	return dl_records_open_fd(new_file(m), name, fd, e);
}

static int add_file(struct dl_model *m, const char *path, struct dl_err *e)
{
	return m->headers_only ? dl_records_open_headers(new_file(m), path, e)
			       : dl_records_open(new_file(m), path, e);
}

/* A shard is one record and holds every tensor that the index names in it. */
static int check_shard(const struct dl_records *file, const struct dl_shards *s,
	size_t shard, struct dl_err *e)
{
	char name[80];

	if (file->records > 1)
		return dl_fail(e, DL_DATA, "%s: bytes after the record",
			file->path);
	for (size_t i = 0; i < s->entries; i++) {
		const struct dl_string *t = &s->entry[i].tensor;

		if (s->entry[i].file == shard
			&& !dl_header_find(&file->record->header, t->s, t->n))
			return dl_fail(e, DL_DATA,
				"%s: tensor \"%s\", which the index names, "
				"is not there",
				file->path,
				dl_scrub(name, sizeof name, t->s, t->n));
	}
	return 0;
}

static int add_index(struct dl_model *m, const char *path, struct dl_err *e)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path) + 1 : 0;
	struct dl_shards s;
	int rc = dl_shards_read(&s, path, e);

	for (size_t i = 0; !rc && i < s.files; i++) {
		char *shard = dl_sprintf("%.*s%s", folder, path, s.file[i].s);

		rc = add_file(m, shard, e);
		if (!rc)
			rc = check_shard(&m->file[m->files - 1], &s, i, e);
		free(shard);
	}
	dl_shards_release(&s);
	return rc;
}

static int add_folder(struct dl_model *m, const char *path, struct dl_err *e)
{
	char *index = dl_sprintf("%s/" DL_SHARDS_INDEX, path);
	char *single = dl_sprintf("%s/" DL_SHARDS_SINGLE, path);
	struct stat st;
	int rc;

	if (!stat(single, &st))
		rc = add_file(m, single, e);
	else if (!stat(index, &st))
		rc = add_index(m, index, e);
	else
		rc = dl_fail(e, DL_NOINPUT,
			"%s: holds neither " DL_SHARDS_SINGLE
			" nor " DL_SHARDS_INDEX,
			path);
	free(single);
	free(index);
	return rc;
}

static int ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && !strcmp(s + n - m, end);
}

int dl_model_is_set(const char *path)
{
	struct stat st;

	return ends_with(path, ".index.json")
		|| (!stat(path, &st) && S_ISDIR(st.st_mode));
}

int dl_model_add(struct dl_model *m, const char *path, struct dl_err *e)
{
	if (!strcmp(path, "-") || !dl_model_is_set(path))
		return add_file(m, path, e);
	return ends_with(path, ".index.json") ? add_index(m, path, e)
					      : add_folder(m, path, e);
}

static void list_plain(struct dl_model *m, size_t file, size_t record)
{
	const struct dl_records_entry *r = &m->file[file].record[record];

	for (size_t i = 0; i < r->header.tensors; i++) {
		struct dl_model_tensor *t = &m->tensor[m->tensors++];

		*t = (struct dl_model_tensor){.info = r->header.tensor[i],
			.file = file,
			.record = record};
		t->info.offset += r->at;
	}
}

/* The tensors of a record that is encoded, as they are meant. Those in F16 or
 * BF16 are what they are: a model that was made smaller stays so. */
static void list_coded(struct dl_model *m, size_t file, size_t record,
	const struct dl_decode *d)
{
	for (size_t i = 0; i < d->how.tensors; i++) {
		const struct dl_encoded *c = &d->how.tensor[i];
		struct dl_model_tensor *t = &m->tensor[m->tensors];

		if (!c->stored)
			continue;
		m->tensors++;
		*t = (struct dl_model_tensor){
			.info = *c->stored, .file = file, .record = record};
		t->info.offset += d->record->at;
		if (!c->scales)
			continue;
		t->coded = c;
		t->decode = d;
		t->info.dtype = c->dtype;
		t->info.rank = c->rank;
		t->info.shape = c->shape;
		t->info.elements = c->elements;
		t->info.size = c->elements * dl_dtype_bits(c->dtype) / 8;
	}
}

static int list_record(
	struct dl_model *m, size_t file, size_t record, struct dl_err *e)
{
	const struct dl_records *in = &m->file[file];
	struct dl_decode *d;
	int rc;

	if (!dl_header_meta(&in->record[record].header, "dl.codec")) {
		list_plain(m, file, record);
		return 0;
	}
	d = dl_alloc(sizeof *d);
	m->decode = dl_resize(m->decode, m->decodes + 1, sizeof *m->decode);
	m->decode[m->decodes++] = d;
	rc = dl_decode_open(d, in, record, e);
	if (!rc && !m->headers_only)
		rc = dl_decode_check(d, e);
	if (!rc)
		list_coded(m, file, record, d);
	else if (in->records > 1)
		dl_at(e, "record %zu", record);
	return rc ? dl_at(e, "%s", in->path) : 0;
}

static void forget_list(struct dl_model *m)
{
	for (size_t i = 0; i < m->decodes; i++) {
		dl_decode_close(m->decode[i]);
		free(m->decode[i]);
	}
	free(m->decode);
	free(m->tensor);
	m->decode = NULL;
	m->tensor = NULL;
	m->decodes = m->tensors = 0;
}

int dl_model_list(struct dl_model *m, struct dl_err *e)
{
	size_t n = 0;
	char name[80];
	int rc = 0;

	forget_list(m);
	for (size_t f = 0; f < m->files; f++)
		for (size_t r = 0; r < m->file[f].records; r++)
			n += m->file[f].record[r].header.tensors;
	m->tensor = dl_alloc_array(n, sizeof *m->tensor);
	for (size_t f = 0; f < m->files; f++)
		for (size_t r = 0; r < m->file[f].records && !rc; r++)
			rc = list_record(m, f, r, e);
	if (rc)
		return rc;
	qsort(m->tensor, m->tensors, sizeof *m->tensor, compare);
	for (size_t i = 1; i < m->tensors; i++) {
		const struct dl_model_tensor *t = &m->tensor[i];

		if (!compare(t - 1, t))
			return dl_fail(e, DL_DATA,
				"tensor \"%s\" comes twice: in %s and in %s",
				dl_scrub(name, sizeof name, t->info.name.s,
					t->info.name.n),
				m->file[t[-1].file].path,
				m->file[t[0].file].path);
	}
	return 0;
}

static int open_model(struct dl_model *m, const char *path, struct dl_err *e)
{
	int rc = dl_model_add(m, path, e);

	if (!rc && m->file[0].records > 1)
		rc = dl_fail(e, DL_DATA,
			"%s: not a model but %zu records (see dl-join)",
			m->file[0].path, m->file[0].records);
	if (!rc)
		rc = dl_model_list(m, e);
	if (rc)
		dl_model_close(m);
	return rc;
}

int dl_model_open(struct dl_model *m, const char *path, struct dl_err *e)
{
	*m = (struct dl_model)DL_MODEL_INIT;
	return open_model(m, path, e);
}

int dl_model_open_headers(
	struct dl_model *m, const char *path, struct dl_err *e)
{
	*m = (struct dl_model)DL_MODEL_INIT;
	m->headers_only = 1;
	return open_model(m, path, e);
}

void dl_model_close(struct dl_model *m)
{
	forget_list(m);
	for (size_t f = 0; f < m->files; f++)
		dl_records_close(&m->file[f]);
	free(m->file);
	*m = (struct dl_model)DL_MODEL_INIT;
}

const struct dl_model_tensor *dl_model_find(
	const struct dl_model *m, const char *name, size_t n)
{
	struct dl_model_tensor key;

	key.info.name = (struct dl_string){name, n};
	return bsearch(&key, m->tensor, m->tensors, sizeof *m->tensor, compare);
}

/* Decoding begins at a block. */
static int read_coded(const struct dl_model_tensor *t, uint64_t at,
	unsigned char *out, size_t n, struct dl_err *e)
{
	unsigned width = dl_dtype_bits(t->info.dtype) / 8;
	uint64_t first = at / width, end = first + n / width;
	float x[DL_CHUNK];
	int rc = 0;

	while (!rc && first < end) {
		size_t skip = first % DL_QUANT_BLOCK_MAX;
		size_t part = DL_CHUNK - skip;

		if (part > end - first)
			part = end - first;
		rc = dl_decode_read(
			t->decode, t->coded, first - skip, skip + part, x, e);
		if (!rc)
			dl_decode_restore(out, x + skip, t->info.dtype, part);
		first += part;
		out += part * width;
	}
	return rc;
}

int dl_model_read(const struct dl_model *m, const struct dl_model_tensor *t,
	uint64_t at, void *buf, size_t n, struct dl_err *e)
{
	if (t->coded)
		return read_coded(t, at, buf, n, e);
	return dl_records_read(
		&m->file[t->file], t->info.offset + at, buf, n, e);
}

int dl_model_read_f32(const struct dl_model *m, const struct dl_model_tensor *t,
	float *out, struct dl_err *e)
{
	uint64_t width = dl_dtype_bits(t->info.dtype) / 8;
	uint64_t step = BLOCK / width;
	void *block = dl_alloc(BLOCK);
	int rc = 0;

	for (uint64_t i = 0; !rc && i < t->info.elements; i += step) {
		uint64_t n = t->info.elements - i;

		if (n > step)
			n = step;
		rc = dl_model_read(m, t, i * width, block, n * width, e);
		if (!rc)
			dl_to_f32(out + i, block, t->info.dtype, n);
	}
	free(block);
	return rc;
}
