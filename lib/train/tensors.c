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

int dl_tensors_write(
	struct dl_tensors *t, int fd, const char *path, struct dl_err *e)
{
	struct dl_buf head = DL_BUF_INIT;
	size_t *order = dl_alloc_array(t->n, sizeof(*order));
	int failed;

	dl_writer_finish(&t->writer, &head, order);
	failed = dl_write_full(fd, head.data, head.len);
	for (size_t i = 0; i < t->n && !failed; i++)
		failed = dl_write_full(
			fd, t->item[order[i]].data, t->item[order[i]].size);
	free(order);
	dl_buf_free(&head);
	return failed ? dl_fail_sys(e, DL_IOERR, "%s", path) : 0;
}

void dl_tensors_release(struct dl_tensors *t)
{
	dl_writer_release(&t->writer);
	free(t->item);
	*t = (struct dl_tensors)DL_TENSORS_INIT;
}

int dl_tensors_scratch(struct dl_tensors *t, const char *path, struct dl_err *e)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	rc = dl_tensors_write(t, fd, path, e);
	if (!rc && ftruncate(fd, lseek(fd, 0, SEEK_CUR)))
		rc = dl_fail_sys(e, DL_IOERR, "%s", path);
	if (close(fd) && !rc)
		rc = dl_fail_sys(e, DL_IOERR, "%s", path);
	return rc;
}
