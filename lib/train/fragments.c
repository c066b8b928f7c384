#include "train/fragments.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tensor/records.h"
#include "train/kernels.h"
#include "train/tensors.h"

enum { PIECE = 16384 }; /* values blended at a time */

static int find_param(struct dl_fragments *f, size_t i, struct dl_err *e)
{
	const struct dl_layout_tensor *t = &f->layout.tensor[i];
	const struct dl_llama_param *p;
	char name[80];

	if (t->rule == DL_ALIAS)
		return 0;
	p = dl_llama_find(f->m, t->name.s, t->name.n);
	dl_scrub(name, sizeof(name), t->name.s, t->name.n);
	if (!p)
		return dl_fail(e, DL_DATA, "the model has no %s", name);
	if (t->rank != p->rank || t->shape[0] != p->shape[0] ||
		(p->rank > 1 && t->shape[1] != p->shape[1]))
		return dl_fail(
			e, DL_DATA, "the model has another shape for %s", name);
	f->param[i] = p;
	return 0;
}

int dl_fragments_open(struct dl_fragments *f, const struct dl_llama *m,
	const char *path, struct dl_err *e)
{
	int rc;

	memset(f, 0, sizeof(*f));
	f->m = m;
	rc = dl_layout_read(&f->layout, path, e);
	if (rc)
		return rc;
	f->param = dl_alloc_array(f->layout.tensors, sizeof(*f->param));
	f->sent = dl_alloc_array(f->layout.fragments, sizeof(*f->sent));
	f->applied = dl_alloc_array(f->layout.fragments, sizeof(*f->applied));
	for (size_t i = 0; i < f->layout.tensors && !rc; i++)
		rc = find_param(f, i, e);
	if (rc) {
		dl_at(e, "%s", path);
		dl_fragments_close(f);
	}
	return rc;
}

void dl_fragments_close(struct dl_fragments *f)
{
	if (!f->param)
		return;
	for (uint32_t p = 0; p < f->layout.fragments; p++) {
		dl_mapped_release(&f->sent[p]);
		dl_mapped_release(&f->applied[p]);
	}
	free(f->sent);
	free(f->applied);
	dl_layout_release(&f->layout);
	free(f->param);
	memset(f, 0, sizeof(*f));
}

static int check_fragment(
	const struct dl_fragments *f, uint32_t p, struct dl_err *e)
{
	if (p < f->layout.fragments)
		return 0;
	return dl_fail(e, DL_DATA, "no fragment %u: the layout has %u", p,
		f->layout.fragments);
}

/* What is mapped was written before, and so has all its pages. */
static int overwrite(struct dl_mapped *m, struct dl_tensors *r, int fd,
	const char *path, struct dl_err *e)
{
	void *to = dl_mapped_find(m, fd);
	int rc;

	if (to && m->size == dl_tensors_size(r)) {
		dl_tensors_copy(r, NULL, to);
		return 0;
	}
	rc = dl_tensors_overwrite(r, fd, path, e);
	if (!rc)
		dl_mapped_take(m, fd, PROT_READ | PROT_WRITE);
	return rc;
}

static int write_sent(struct dl_mapped *m, struct dl_tensors *r,
	const char *path, struct dl_err *e)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	rc = overwrite(m, r, fd, path, e);
	close(fd);
	return rc;
}

int dl_fragments_send(struct dl_fragments *f, uint32_t p, const float *values,
	const char *path, struct dl_err *e)
{
	struct dl_tensors r = DL_TENSORS_INIT;
	int rc = check_fragment(f, p, e);

	if (rc)
		return rc;
	const struct dl_layout_fragment *part = &f->layout.fragment[p];

	dl_writer_meta(&r.writer, "dl.format", "1");
	dl_writer_meta(&r.writer, "dl.kind", "params");
	dl_writer_meta(&r.writer, "dl.layout", f->layout.hash);
	dl_writer_meta_u64(&r.writer, "dl.fragment", p);
	for (size_t i = part->first; i < part->first + part->tensors; i++)
		if (f->param[i])
			dl_tensors_add(&r, "", f->param[i], values);
	rc = write_sent(&f->sent[p], &r, path, e);
	dl_tensors_release(&r);
	return rc;
}

static void blend(const float *from, size_t n, float keep, float add, float *to)
{
	if (keep == 1 && add == 1) {
		dl_train_kernels()->add(to, from, n);
		return;
	}
	if (keep == 0 && add == 1) {
		memcpy(to, from, n * sizeof *to);
		return;
	}
	for (size_t i = 0; i < n; i++)
		to[i] = keep * to[i] + add * from[i];
}

/* As blend_from, through memory that stays in the cache. */
static int blend_pieces(const struct dl_records *r, uint64_t at, size_t n,
	float keep, float add, float *to, struct dl_err *e)
{
	float piece[PIECE];
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i += PIECE) {
		size_t k = n - i < PIECE ? n - i : PIECE;

		rc = dl_records_read(
			r, at + i * sizeof *to, piece, k * sizeof *to, e);
		if (!rc)
			blend(piece, k, keep, add, to + i);
	}
	return rc;
}

/* n values at that byte of the file, which may be mapped. */
static int blend_from(const struct dl_records *r, const unsigned char *mapped,
	uint64_t at, size_t n, float keep, float add, float *to,
	struct dl_err *e)
{
	if (!mapped)
		return blend_pieces(r, at, n, keep, add, to, e);
	blend((const float *)(const void *)(mapped + at), n, keep, add, to);
	return 0;
}

static int check_record(const struct dl_fragments *f, uint32_t p,
	const struct dl_records *r, struct dl_err *e)
{
	if (r->records > 1)
		return dl_fail(e, DL_DATA, "%s: more than one record", r->path);
	if (dl_layout_check_record(&f->layout, p, &r->record[0].header, e))
		return dl_at(e, "%s", r->path);
	return 0;
}

/* NULL when it is to be read: numbers may lie at any place of a record. */
static const void *map_applied(struct dl_mapped *m, const struct dl_records *r)
{
	const void *at = dl_mapped_find(m, r->fd);

	if (!at)
		at = dl_mapped_take(m, r->fd, PROT_READ);
	return m->size == r->size && r->record[0].at % sizeof(float) == 0
		       ? at
		       : NULL;
}

int dl_fragments_apply(struct dl_fragments *f, uint32_t p, const char *path,
	float keep, float add, float *values, struct dl_err *e)
{
	const unsigned char *mapped = NULL;
	struct dl_records r;
	int rc = check_fragment(f, p, e);

	if (rc)
		return rc;
	const struct dl_layout_fragment *part = &f->layout.fragment[p];

	rc = dl_records_open(&r, path, e);
	if (!rc)
		rc = check_record(f, p, &r, e);
	if (!rc)
		mapped = map_applied(&f->applied[p], &r);
	for (size_t i = part->first; !rc && i < part->first + part->tensors;
		i++) {
		const struct dl_llama_param *q = f->param[i];
		uint64_t at = f->layout.tensor[i].offset * sizeof(float);

		if (q)
			rc = blend_from(&r, mapped, r.record[0].at + at,
				q->count, keep, add, values + q->at, e);
	}
	dl_records_close(&r);
	return rc;
}

void dl_fragments_visit(const struct dl_fragments *f, uint32_t p,
	void (*visit)(void *ctx, size_t at, size_t n), void *ctx)
{
	const struct dl_layout_fragment *part = &f->layout.fragment[p];

	for (size_t i = part->first; i < part->first + part->tensors; i++)
		if (f->param[i])
			visit(ctx, f->param[i]->at, f->param[i]->count);
}
