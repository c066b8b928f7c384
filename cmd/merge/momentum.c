#include "cmd/merge/momentum.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/merge/meta.h"
#include "cmd/merge/output.h"
#include "merge/merge.h"

enum { BLOCK = 1 << 16 };

static int check_version(const struct base *b, uint32_t p,
	const struct dl_header *h, struct dl_err *e)
{
	struct dl_version was, now = b->fragment[p].version;

	if (meta_version(h, "dl.version", &was, e))
		return e->code;
	return was.epoch && now.epoch && dl_version_cmp(was, now)
		       ? dl_fail(e, DL_DATA,
				 "momentum of version %llu.%llu, but the base "
				 "is %llu.%llu",
				 (unsigned long long)was.epoch,
				 (unsigned long long)was.number,
				 (unsigned long long)now.epoch,
				 (unsigned long long)now.number)
		       : 0;
}

static int take_record(
	struct momentum *m, struct base *b, size_t i, struct dl_err *e)
{
	const struct dl_header *h = &m->file.record[i].header;
	const char *kind;
	uint32_t p;

	if (meta_text(h, "dl.kind", &kind, e) || base_agree(b, h, e))
		return e->code;
	if (strcmp(kind, "momentum"))
		return dl_fail(e, DL_DATA, "not momentum");
	if (base_find(b, h, &p, e))
		return 0; /* of a fragment that this base does not hold */
	if (m->record[p] != SIZE_MAX)
		return dl_fail(e, DL_DATA, "the fragment comes twice");
	m->record[p] = i;
	return check_version(b, p, h, e) ||
			       dl_layout_check_record(&b->layout, p, h, e)
		       ? e->code
		       : 0;
}

int momentum_open(
	struct momentum *m, const char *path, struct base *b, struct dl_err *e)
{
	int rc = 0;

	*m = (struct momentum){.file = DL_RECORDS_INIT};
	m->record = dl_alloc_array(b->layout.fragments, sizeof *m->record);
	for (uint32_t p = 0; p < b->layout.fragments; p++)
		m->record[p] = SIZE_MAX;
	if (!access(path, F_OK))
		rc = dl_records_open(&m->file, path, e);
	m->replaced = dl_alloc(m->file.records);
	for (size_t i = 0; !rc && i < m->file.records; i++)
		if (take_record(m, b, i, e))
			rc = dl_at(e, "%s: record %zu", path, i);
	return rc;
}

void momentum_close(struct momentum *m)
{
	dl_records_close(&m->file);
	free(m->record);
	free(m->replaced);
}

int momentum_read(const struct momentum *m, const struct base *b, uint32_t p,
	float *out, struct dl_err *e)
{
	size_t n = b->layout.fragment[p].elements;
	size_t i = m->record ? m->record[p] : SIZE_MAX;

	if (i == SIZE_MAX) {
		memset(out, 0, n * sizeof *out);
		return 0;
	}
	if (dl_records_read(
		    &m->file, m->file.record[i].at, out, n * sizeof *out, e))
		return e->code;
	return dl_find_nonfinite(out, n) == n
		       ? 0
		       : dl_fail(e, DL_DATA,
				 "%s: record %zu: momentum is not finite",
				 m->file.path, i);
}

int momentum_write(struct momentum *m, const struct base *b, uint32_t p,
	const float *data, struct dl_output *o, struct dl_err *e)
{
	if (m->record[p] != SIZE_MAX)
		m->replaced[m->record[p]] = 1;
	return output_packed(b, p, "momentum", data, o, e);
}

static int copy(const struct dl_records *file, size_t i, struct dl_output *o,
	struct dl_err *e)
{
	const struct dl_records_entry *entry = &file->record[i];
	uint64_t at = entry->at - entry->header.header_size - 8;
	uint64_t end = entry->at + entry->header.data_size;
	unsigned char block[BLOCK];
	int rc = 0;

	while (!rc && at < end) {
		size_t n = end - at < BLOCK ? (size_t)(end - at) : BLOCK;

		rc = dl_records_read(file, at, block, n, e);
		if (!rc)
			rc = dl_output_write(o, block, n, e);
		at += n;
	}
	return rc;
}

int momentum_keep(
	const struct momentum *m, struct dl_output *o, struct dl_err *e)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < m->file.records; i++)
		if (!m->replaced[i])
			rc = copy(&m->file, i, o, e);
	return rc;
}
