#include "undo.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plan.h"

/* A name that came or went. */
struct change {
	struct change *before;
	enum undo_kind kind;
	unsigned long call;
	char *path, *kept;
};

/* A file whose data were synced as they are here, and have changed since. */
struct content {
	struct content *next;
	dev_t dev;
	ino_t ino;
	int fd;
	unsigned long serial;
	size_t size;
	char *data;
};

static struct change *last;
static struct content *contents;
static unsigned long now, kept_files, kept_contents;

void undo_begin(unsigned long call)
{
	now = call;
}

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

char *undo_keep(const char *path)
{
	char kept[PATH_MAX + 64];

	snprintf(kept, sizeof kept, "%s.shadow", crash_root());
	syscall(SYS_mkdirat, AT_FDCWD, kept, 0777);
	snprintf(kept, sizeof kept, "%s.shadow/%ld.%lu", crash_root(),
		(long)getpid(), kept_files++);
	if (syscall(SYS_linkat, AT_FDCWD, path, AT_FDCWD, kept, 0))
		return NULL;
	return must(strdup(kept));
}

void undo_forget(char *kept)
{
	if (kept)
		syscall(SYS_unlinkat, AT_FDCWD, kept, 0);
	free(kept);
}

void undo_name(enum undo_kind kind, const char *path, char *kept)
{
	struct change *c = must(malloc(sizeof *c));

	*c = (struct change){last, kind, now, must(strdup(path)), kept};
	last = c;
}

static struct content **find(const struct stat *st)
{
	struct content **at = &contents;

	while (*at && ((*at)->dev != st->st_dev || (*at)->ino != st->st_ino))
		at = &(*at)->next;
	return at;
}

void undo_content(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	struct content *c;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || *find(&st)) {
		close(fd);
		return;
	}
	c = must(malloc(sizeof *c));
	*c = (struct content){contents, st.st_dev, st.st_ino, fd,
		kept_contents++, (size_t)st.st_size,
		must(malloc((size_t)st.st_size + 1))};
	if (pread(fd, c->data, c->size, 0) != (ssize_t)c->size)
		abort();
	contents = c;
}

void undo_synced_file(int fd)
{
	struct content **at, *c;
	struct stat st;

	if (fstat(fd, &st))
		return;
	at = find(&st);
	c = *at;
	if (!c)
		return;
	*at = c->next;
	close(c->fd);
	free(c->data);
	free(c);
}

void undo_forget_all(void)
{
	last = NULL;
	contents = NULL;
}

static int is_in(const char *path, const char *folder, size_t n)
{
	return !strncmp(path, folder, n) && path[n] == '/' &&
	       !strchr(path + n + 1, '/');
}

void undo_synced_folder(const char *path)
{
	struct change **at = &last;
	size_t n = strlen(path);

	while (*at) {
		struct change *c = *at;

		if (!is_in(c->path, path, n)) {
			at = &c->before;
			continue;
		}
		*at = c->before;
		undo_forget(c->kept);
		free(c->path);
		free(c);
	}
}

static void remove_tree(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	char inner[PATH_MAX];

	while (d && (entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (snprintf(inner, sizeof inner, "%s/%s", path,
			    entry->d_name) < (int)sizeof inner &&
			syscall(SYS_unlinkat, AT_FDCWD, inner, 0))
			remove_tree(inner);
	}
	if (d)
		closedir(d);
	syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

static void undo_change(const struct change *c)
{
	switch (c->kind) {
	case UNDO_MADE:
		syscall(SYS_unlinkat, AT_FDCWD, c->path, 0);
		break;
	case UNDO_GONE:
		syscall(SYS_linkat, AT_FDCWD, c->kept, AT_FDCWD, c->path, 0);
		break;
	case UNDO_MADE_FOLDER:
		remove_tree(c->path);
		break;
	case UNDO_GONE_FOLDER:
		syscall(SYS_mkdirat, AT_FDCWD, c->path, 0777);
		break;
	}
}

static void undo_data(const struct content *c)
{
	if (syscall(SYS_ftruncate, c->fd, 0L) ||
		syscall(SYS_pwrite64, c->fd, c->data, c->size, 0L) !=
			(long)c->size)
		abort();
}

/* A number of the seed and a key (splitmix64). */
static uint64_t draw(uint64_t seed, uint64_t key)
{
	uint64_t z = seed * 0x9e3779b97f4a7c15 + key;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t key_of_folder(const char *path)
{
	const char *end = strrchr(path, '/');
	uint64_t key = 0;

	for (path += strlen(crash_root()); path < end; path++)
		key = key * 31 + (unsigned char)*path;
	return key;
}

/* The changes of a folder reach the disk in order: all up to some call. */
static int reached_disk(const struct change *c, unsigned long seed)
{
	return seed &&
	       c->call <= draw(seed, key_of_folder(c->path)) % (now + 1);
}

void undo_all(int what, unsigned long seed)
{
	if (what & UNDO_NAMES)
		for (const struct change *c = last; c; c = c->before)
			if (!reached_disk(c, seed))
				undo_change(c);
	if (what & UNDO_DATA)
		for (const struct content *c = contents; c; c = c->next)
			if (!seed || draw(seed, c->serial) & 1)
				undo_data(c);
}
