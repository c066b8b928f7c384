#include "train/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"

#define PREFIX "dl-learn-"

static int has_room(const char *base, uint64_t room)
{
	struct statvfs v;

	if (access(base, W_OK | X_OK) || statvfs(base, &v))
		return 0;
	return v.f_bavail >= room / v.f_frsize + 1;
}

/* Opens and locks a folder of ours; -1 when it is gone or somebody has it. */
static int lock_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat a, b;

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &a) == 0 &&
		lstat(path, &b) == 0 && a.st_ino == b.st_ino &&
		a.st_dev == b.st_dev && a.st_uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

static void remove_locked(const char *path, int fd)
{
	DIR *d = fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		close(fd);
		return;
	}
	while ((entry = readdir(d)))
		unlinkat(dirfd(d), entry->d_name, 0);
	rmdir(path);
	closedir(d);
}

/* A learner killed outright cannot tidy up, and its files fill memory. */
static void sweep(const char *base)
{
	DIR *d = opendir(base);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char *path;
		int fd;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		path = dl_sprintf("%s/%s", base, entry->d_name);
		fd = lock_folder(path);
		if (fd >= 0)
			remove_locked(path, fd);
		free(path);
	}
	if (d)
		closedir(d);
}

static int make(struct dl_scratch *s, const char *base, struct dl_err *e)
{
	char *path;
	int code;

	/* Again when another learner takes the new folder for a left one. */
	for (int tries = 0; tries < 16; tries++) {
		path = dl_sprintf("%s/" PREFIX "XXXXXX", base);
		if (!mkdtemp(path)) {
			code = dl_fail_sys(e, DL_CANTCREAT, "%s", path);
			free(path);
			return code;
		}
		s->fd = lock_folder(path);
		if (s->fd >= 0) {
			s->path = path;
			return 0;
		}
		rmdir(path);
		free(path);
	}
	return dl_fail(
		e, DL_CANTCREAT, "%s: folders there cannot be locked", base);
}

int dl_scratch_open(
	struct dl_scratch *s, const char *base, uint64_t room, struct dl_err *e)
{
	const char *place[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm",
		getenv("TMPDIR"), "/tmp"};
	char size[DL_HUMAN];
	size_t n = 4;

	if (base) {
		place[0] = base;
		n = 1;
	}
	for (size_t i = 0; i < n; i++) {
		if (!place[i] || !*place[i])
			continue;
		sweep(place[i]);
		if (has_room(place[i], room))
			return make(s, place[i], e);
	}
	return dl_fail(e, DL_CANTCREAT, "%s: no scratch folder with %s of room",
		base ? base : "/dev/shm, $TMPDIR or /tmp",
		dl_human_size(size, room));
}

void dl_scratch_remove(struct dl_scratch *s)
{
	if (!s->path)
		return;
	remove_locked(s->path, s->fd);
	free(s->path);
	*s = (struct dl_scratch)DL_SCRATCH_INIT;
}

char *dl_scratch_file(const struct dl_scratch *s, const char *name)
{
	return dl_sprintf("%s/%s", s->path, name);
}
