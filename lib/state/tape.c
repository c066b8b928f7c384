/* Writing a tape. */
#include "state/tape.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

struct dl_tape {
	char *path;
	int fd;
	uint32_t fragments;
	int named; /* its name is known to be durable */
	int ended; /* an event was lost: nothing may follow it */
	struct dl_buf buf;
};

/* The length of the whole lines at the front of fd's n bytes. */
static int whole_lines(int fd, uint64_t n, uint64_t *out, struct dl_err *e)
{
	char block[4096];

	while (n) {
		size_t size = n < sizeof block ? (size_t)n : sizeof block;

		if (dl_pread_full(fd, block, size, n - size) != (ssize_t)size)
			return dl_fail_sys(e, DL_IOERR, "cannot read");
		for (size_t i = size; i > 0; i--)
			if (block[i - 1] == '\n') {
				*out = n - size + i;
				return 0;
			}
		n -= size;
	}
	*out = 0;
	return 0;
}

/* A crash may have left half a line, and nothing may be glued to it. */
static int cut_torn_line(int fd, struct dl_err *e)
{
	struct stat st;
	uint64_t keep;
	int rc;

	if (fstat(fd, &st))
		return dl_fail_sys(e, DL_IOERR, "cannot look at it");
	if (!S_ISREG(st.st_mode))
		return 0;
	rc = whole_lines(fd, (uint64_t)st.st_size, &keep, e);
	if (!rc && keep < (uint64_t)st.st_size && ftruncate(fd, (off_t)keep))
		rc = dl_fail_sys(e, DL_IOERR, "cannot cut off half a line");
	return rc;
}

/* Opens path to append to. */
static int open_file(int *fd, const char *path, int flags, struct dl_err *e)
{
	*fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC | flags, 0666);
	if (*fd < 0)
		return dl_fail_sys(e,
			flags & O_CREAT	  ? DL_CANTCREAT
			: errno == ENOENT ? DL_NOINPUT
					  : DL_IOERR,
			"%s", path);
	if (!cut_torn_line(*fd, e))
		return 0;
	close(*fd);
	return dl_at(e, "%s", path);
}

static int open_end(struct dl_tape **out, const char *path, int flags,
	uint32_t fragments, struct dl_err *e)
{
	struct dl_tape *t;
	int fd, rc = open_file(&fd, path, flags, e);

	*out = NULL;
	if (rc)
		return rc;
	t = dl_alloc(sizeof *t);
	t->path = dl_strdup(path);
	t->fd = fd;
	t->fragments = fragments;
	*out = t;
	return 0;
}

int dl_tape_open(struct dl_tape **out, const char *path,
	const struct dl_tape_start *s, int64_t wall, int64_t now,
	struct dl_err *e)
{
	struct dl_tape *t;
	int rc = open_end(&t, path, O_CREAT, s->config.schedule.fragments, e);

	*out = NULL;
	if (rc)
		return rc;
	dl_tape_write_start(&t->buf, s, wall, now);
	rc = dl_tape_flush(t, e);
	if (rc)
		dl_tape_close(t, NULL);
	else
		*out = t;
	return rc;
}

int dl_tape_continue(struct dl_tape **t, const char *path, uint32_t fragments,
	struct dl_err *e)
{
	return open_end(t, path, 0, fragments, e);
}

void dl_tape_event(struct dl_tape *t, const struct dl_sync_event *ev,
	const struct dl_tape_made *made, int64_t wall)
{
	if (t->buf.len > DL_TAPE_BACKLOG)
		t->ended = 1;
	if (!t->ended)
		dl_tape_write_event(&t->buf, ev, made, t->fragments, wall);
}

int dl_tape_flush(struct dl_tape *t, struct dl_err *e)
{
	ssize_t n;

	while (t->buf.len) {
		n = write(t->fd, t->buf.data, t->buf.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return dl_fail_sys(e, DL_IOERR, "%s", t->path);
		dl_buf_drop(&t->buf, (size_t)n);
	}
	if (t->ended)
		return dl_fail(e, DL_IOERR,
			"%s: ends here: events were lost while it could not be "
			"written",
			t->path);
	return 0;
}

int dl_tape_sync(struct dl_tape *t, struct dl_err *e)
{
	int rc = dl_tape_flush(t, e);

	if (!rc && fsync(t->fd))
		rc = dl_fail_sys(e, DL_IOERR, "%s", t->path);
	if (!rc && !t->named) {
		rc = dl_fsync_parent(t->path, e);
		t->named = !rc;
	}
	return rc;
}

int dl_tape_reopen(struct dl_tape *t, struct dl_err *e)
{
	/* A line that is half written goes on where it began. */
	int fd, rc = dl_tape_flush(t, e);

	if (!rc)
		rc = open_file(&fd, t->path, O_CREAT, e);
	if (rc)
		return rc;
	close(t->fd);
	t->fd = fd;
	t->named = 0;
	return 0;
}

int dl_tape_close(struct dl_tape *t, struct dl_err *e)
{
	int rc;

	if (!t)
		return 0;
	rc = dl_tape_flush(t, e);
	if (close(t->fd) && !rc)
		rc = dl_fail_sys(e, DL_IOERR, "%s", t->path);
	dl_buf_free(&t->buf);
	free(t->path);
	free(t);
	return rc;
}
