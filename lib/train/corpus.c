#include "train/corpus.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/input.h"
#include "base/mem.h"
#include "base/rng.h"

static int check_room(uint64_t bytes, const char *path, struct dl_err *e)
{
	uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
			  (uint64_t)sysconf(_SC_PAGESIZE);

	return bytes <= memory ? 0
			       : dl_fail(e, DL_DATA,
					 "%s: more data than this machine has "
					 "memory",
					 path);
}

/* Text has an end: devices may have none. */
static int check_file(int fd, size_t before, const char *path, struct dl_err *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return dl_fail_sys(e, DL_IOERR, "%s", path);
	if (S_ISREG(st.st_mode))
		return check_room(before + (uint64_t)st.st_size, path, e);
	return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)
		       ? 0
		       : dl_fail(e, DL_DATA, "%s: neither a file nor a pipe",
				 path);
}

/* Appends what is left of in to data; room is made by doubling. */
static int read_on(struct dl_buf *data, struct dl_input *in, const char *path,
	struct dl_err *e)
{
	ssize_t n;
	int rc;

	do {
		dl_buf_reserve(data, 1 << 20);
		n = dl_input_read(in, data->data + data->len, 1 << 20, e);
		if (n < 0)
			return dl_at(e, "%s", path);
		data->len += (size_t)n;
		rc = check_room(data->len, path, e);
	} while (!rc && n);
	return rc;
}

static int read_file(
	struct dl_buf *data, const char *path, int ids, struct dl_err *e)
{
	int fd, rc = dl_open_read(path, &fd, e);
	size_t before = data->len;
	struct dl_input in;

	if (rc)
		return rc;
	dl_input_init(&in, fd);
	rc = check_file(fd, before, path, e);
	if (!rc)
		rc = read_on(data, &in, path, e);
	if (!rc && ids && (data->len - before) % 2)
		rc = dl_fail(e, DL_DATA,
			"%s: an odd number of bytes, so not 16-bit ids", path);
	dl_input_release(&in);
	close(fd);
	return rc;
}

static unsigned token(const struct dl_corpus *c, size_t i)
{
	return c->width == 1 ? c->data[i] : dl_le16(c->data + 2 * i);
}

static int check_ids(const struct dl_corpus *c, size_t vocab, struct dl_err *e)
{
	if (c->width == 1 && vocab >= 256)
		return 0;
	for (size_t i = 0; i < c->tokens; i++)
		if (token(c, i) >= vocab)
			return dl_fail(e, DL_DATA,
				"token %zu of the data is %u, beyond the "
				"vocabulary of %zu",
				i, token(c, i), vocab);
	return 0;
}

int dl_corpus_read(struct dl_corpus *c, char *const *paths, size_t n, int ids,
	size_t vocab, double held_out, struct dl_err *e)
{
	struct dl_buf data = DL_BUF_INIT;
	int rc = 0;

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < n && !rc; i++)
		rc = read_file(&data, paths[i], ids, e);
	c->data = data.data;
	c->width = ids ? 2 : 1;
	c->tokens = data.len / c->width;
	c->train = (size_t)((double)c->tokens * (1 - held_out));
	if (!rc)
		rc = check_ids(c, vocab, e);
	if (rc)
		dl_corpus_release(c);
	return rc;
}

void dl_corpus_release(struct dl_corpus *c)
{
	free(c->data);
	memset(c, 0, sizeof(*c));
}

void dl_corpus_copy(
	const struct dl_corpus *c, size_t at, size_t count, uint16_t *out)
{
	for (size_t i = 0; i < count; i++)
		out[i] = (uint16_t)token(c, at + i);
}

int dl_corpus_check(const struct dl_corpus *c, size_t length, struct dl_err *e)
{
	if (c->train > length)
		return 0;
	return dl_fail(e, DL_DATA,
		"%zu tokens to train on are fewer than the context of %zu and "
		"one more",
		c->train, length);
}

void dl_corpus_sample(const struct dl_corpus *c, uint64_t key, uint64_t clock,
	size_t sequences, size_t length, uint16_t *out)
{
	for (size_t i = 0; i < sequences; i++) {
		uint64_t draw = dl_rng_at(key, clock * sequences + i);

		dl_corpus_copy(c, (size_t)(draw % (c->train - length)),
			length + 1, out + i * (length + 1));
	}
}
