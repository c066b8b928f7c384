#include "train/tensors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

void dl_tensors_add(struct dl_tensors *t, const char *prefix,
	const struct dl_llama_param *p, const float *values)
{
	uint64_t shape[2] = {p->shape[0], p->shape[1]};
	char *name = dl_sprintf("%s%s", prefix, p->name);

	dl_writer_tensor(
		&t->writer, name, strlen(name), DL_F32, p->rank, shape);
	free(name);
	t->item = dl_resize(t->item, t->n + 1, sizeof(*t->item));
	t->item[t->n].data = values + p->at;
	t->item[t->n++].size = p->count * sizeof(float);
}

static struct dl_tensors_item *item(const struct dl_tensors *t, size_t i)
{
	return &t->item[t->order[i]];
}

static void finish(struct dl_tensors *t)
{
	if (t->order)
		return;
	t->order = dl_alloc_array(t->n, sizeof(*t->order));
	dl_writer_finish(&t->writer, &t->head, t->order);
	t->size = t->head.len;
	for (size_t i = 0; i < t->n; i++) {
		item(t, i)->at = t->size;
		t->size += item(t, i)->size;
	}
}

size_t dl_tensors_size(struct dl_tensors *t)
{
	finish(t);
	return t->size;
}

struct copy {
	const struct dl_tensors *t;
	unsigned char *to;
};

static void copy_item(void *ctx, size_t i)
{
	const struct copy *c = ctx;

	memcpy(c->to + item(c->t, i)->at, item(c->t, i)->data,
		item(c->t, i)->size);
}

void dl_tensors_copy(struct dl_tensors *t, struct dl_pool *pool, void *to)
{
	struct copy c = {t, to};

	finish(t);
	memcpy(to, t->head.data, t->head.len);
	dl_pool_run(pool, t->n, copy_item, &c);
}

int dl_tensors_write(
	struct dl_tensors *t, int fd, const char *path, struct dl_err *e)
{
	int failed;

	finish(t);
	failed = dl_write_full(fd, t->head.data, t->head.len);
	for (size_t i = 0; i < t->n && !failed; i++)
		failed = dl_write_full(fd, item(t, i)->data, item(t, i)->size);
	return failed ? dl_fail_sys(e, DL_IOERR, "%s", path) : 0;
}

void dl_tensors_release(struct dl_tensors *t)
{
	dl_writer_release(&t->writer);
	free(t->item);
	free(t->order);
	dl_buf_free(&t->head);
	*t = (struct dl_tensors)DL_TENSORS_INIT;
}

int dl_tensors_overwrite(
	struct dl_tensors *t, int fd, const char *path, struct dl_err *e)
{
	int rc = dl_tensors_write(t, fd, path, e);

	if (!rc && ftruncate(fd, (off_t)t->size))
		rc = dl_fail_sys(e, DL_IOERR, "%s", path);
	return rc;
}

int dl_tensors_scratch(struct dl_tensors *t, const char *path, struct dl_err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	rc = dl_tensors_overwrite(t, fd, path, e);
	if (close(fd) && !rc)
		rc = dl_fail_sys(e, DL_IOERR, "%s", path);
	return rc;
}
