/* The name of a learner: whoever holds new/NAME/.lock has it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "link/spool_file.h"

static int is_same(int folder, int fd)
{
	struct stat mine, there;

	return !fstat(fd, &mine) &&
	       !fstatat(folder, ".lock", &there, AT_SYMLINK_NOFOLLOW) &&
	       mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

static int refuse(int fd, const char *name, struct dl_err *e)
{
	char who[128], shown[256];
	ssize_t n = dl_pread_full(fd, who, sizeof who, 0);
	const char *newline = n > 0 ? memchr(who, '\n', (size_t)n) : NULL;

	if (!newline)
		return dl_fail(e, DL_NOPERM,
			"a learner of the name %s is at work", name);
	return dl_fail(e, DL_NOPERM, "a learner of the name %s is at work: %s",
		name,
		dl_scrub(shown, sizeof shown, who,
			(unsigned long)(newline - who)));
}

/* Says who has the lock, for the next one who wants it. */
static void sign(int fd)
{
	char host[64] = "?", line[128];
	int n;

	gethostname(host, sizeof host - 1);
	n = snprintf(
		line, sizeof line, "%s process %ld\n", host, (long)getpid());
	if (!ftruncate(fd, 0))
		(void)!pwrite(fd, line, (size_t)n, 0);
}

static int lock(int fd, const char *name, struct dl_err *e)
{
	struct flock f = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (!fcntl(fd, F_SETLK, &f)) {
		sign(fd);
		return 0;
	}
	if (errno == EACCES || errno == EAGAIN)
		return refuse(fd, name, e);
	return dl_fail_sys(e, DL_IOERR, "new/%s/.lock", name);
}

int dl_spool_lock(int spool, const char *name, int *fd, struct dl_err *e)
{
	char *path = dl_sprintf("new/%s", name);
	int folder = -1, code = dl_spool_make_folder(spool, path, e);

	if (!code)
		code = dl_spool_open_folder(spool, path, &folder, e);
	free(path);
	if (code)
		return code;
	if (*fd >= 0 && is_same(folder, *fd)) {
		close(folder);
		return 0;
	}
	dl_spool_unlock(fd);
	*fd = openat(folder, ".lock",
		O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
	if (*fd < 0)
		code = dl_fail_sys(e, DL_CANTCREAT, "new/%s/.lock", name);
	else
		code = lock(*fd, name, e);
	if (code)
		dl_spool_unlock(fd);
	close(folder);
	return code;
}

void dl_spool_unlock(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
