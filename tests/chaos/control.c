/*
 * The chaos shim, to be preloaded: the crash shim (tests/crash/shim.c) of a
 * machine that a page of shared memory describes, while it runs. Its disk below
 * DL_CRASH_ROOT can be slow or full, its wall clock off; the monotonic clock is
 * left alone. Nothing is undone here.
 *
 *	DL_CHAOS_CONTROL  the page, as control.py lays it out
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/crash/plan.h"
#include "tests/crash/undo.h"

struct control {
	volatile int32_t full, delay_us;
	volatile int64_t wall_ns;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct control calm, *control = &calm;
static char root[PATH_MAX];

__attribute__((constructor)) static void begin(void)
{
	const char *folder = getenv("DL_CRASH_ROOT");
	const char *page = getenv("DL_CHAOS_CONTROL");
	void *p;
	int fd;

	if (!folder || !realpath(folder, root))
		*root = '\0';
	fd = page ? (int)syscall(
			    SYS_openat, AT_FDCWD, page, O_RDONLY | O_CLOEXEC)
		  : -1;
	if (fd < 0)
		return;
	p = mmap(NULL, sizeof *control, PROT_READ, MAP_SHARED, fd, 0);
	if (p != MAP_FAILED)
		control = p;
	close(fd);
}

const char *crash_root(void)
{
	return root;
}

/* Room is what new names and data need; folders have theirs. */
static int takes_room(enum crash_call call, const char *path)
{
	struct stat st;

	if (call == CRASH_SYNC)
		return !lstat(path, &st) && !S_ISDIR(st.st_mode);
	return call == CRASH_CREATE || call == CRASH_WRITE ||
	       call == CRASH_LINK || call == CRASH_MKDIR;
}

/* A disk does one thing after the other. */
enum crash_verdict crash_enter(enum crash_call call, const char *path)
{
	struct timespec pause = {control->delay_us / 1000000,
		control->delay_us % 1000000 * 1000L};

	pthread_mutex_lock(&lock);
	if (pause.tv_sec || pause.tv_nsec)
		nanosleep(&pause, NULL);
	if (!control->full || !takes_room(call, path))
		return CRASH_PASS;
	errno = ENOSPC;
	return CRASH_FAIL;
}

void crash_leave(void)
{
	int saved = errno;

	pthread_mutex_unlock(&lock);
	errno = saved;
}

_Noreturn void crash_die(void)
{
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

char *undo_keep(const char *path)
{
	(void)path;
	return NULL;
}

void undo_name(enum undo_kind kind, const char *path, char *kept)
{
	(void)kind;
	(void)path;
	(void)kept;
}

void undo_forget(char *kept)
{
	(void)kept;
}

void undo_content(const char *path)
{
	(void)path;
}

void undo_synced_file(int fd)
{
	(void)fd;
}

void undo_synced_folder(const char *path)
{
	(void)path;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	const int64_t second = 1000000000;
	int64_t ns;

	if (syscall(SYS_clock_gettime, clock, t))
		return -1;
	if (clock == CLOCK_REALTIME) {
		ns = t->tv_sec * second + t->tv_nsec + control->wall_ns;
		t->tv_sec = ns / second;
		t->tv_nsec = ns % second;
	}
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	t->tv_sec = now.tv_sec;
	t->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}
