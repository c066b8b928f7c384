/* A new file that is its owner's alone. */
#include "base/file.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int fill(int fd, const void *p, size_t n)
{
	/* mkstemp's mode is 0600 but for what the umask takes away. */
	if (fchmod(fd, S_IRUSR | S_IWUSR) || dl_write_full(fd, p, n))
		return -1;
	return fsync(fd);
}

static int write_temp(char *temp, const void *p, size_t n)
{
	int fd = mkstemp(temp), rc;

	if (fd < 0)
		return -1;
	rc = fill(fd, p, n);
	if (close(fd) || rc) {
		unlink(temp);
		return -1;
	}
	return 0;
}

/* A link, unlike rename, takes nobody's name away. */
static int publish(const char *temp, const char *path, struct dl_err *e)
{
	int rc = 0;

	if (link(temp, path))
		rc = errno == EEXIST ? dl_fail(e, DL_CANTCREAT,
					       "%s: is there already", path)
				     : dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	unlink(temp);
	return rc ? rc : dl_fsync_parent(path, e);
}

int dl_write_new(const char *path, const void *p, size_t n, struct dl_err *e)
{
	char *temp = dl_sprintf("%s.tmp.XXXXXX", path);
	sigset_t all, before;
	int rc;

	/* Nothing may stop us between the temporary file and its end. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (write_temp(temp, p, n))
		rc = dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	else
		rc = publish(temp, path, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(temp);
	return rc;
}
