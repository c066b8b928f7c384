#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "undo.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static const char *what, *skip;
static unsigned long at, seed, calls, syncs;
static int log_fd = -1;

static const char *const names[] = {"create", "write", "truncate", "rename",
	"link", "unlink", "mkdir", "rmdir", "sync"};

static unsigned long number(const char *name)
{
	const char *s = getenv(name);

	return s ? strtoul(s, NULL, 10) : 0;
}

static void read_plan(void)
{
	const char *folder = getenv("DL_CRASH_ROOT");
	const char *program = getenv("DL_CRASH_PROGRAM");
	const char *log = getenv("DL_CRASH_LOG");

	what = getenv("DL_CRASH_DO");
	if (!what)
		what = "";
	skip = getenv("DL_CRASH_SKIP");
	at = number("DL_CRASH_AT");
	seed = number("DL_CRASH_SEED");
	if (!folder || !realpath(folder, root) ||
		(program && strcmp(program, program_invocation_short_name)))
		*root = '\0';
	calls = syncs = 0;
	if (*root && log)
		log_fd = (int)syscall(SYS_openat, AT_FDCWD, log,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void begin_again(void)
{
	pthread_mutex_init(&lock, NULL);
	undo_forget_all();
	read_plan();
}

__attribute__((constructor)) static void begin(void)
{
	read_plan();
	pthread_atfork(NULL, NULL, begin_again);
}

const char *crash_root(void)
{
	return root;
}

_Noreturn void crash_die(void)
{
	if (!strcmp(what, "power"))
		undo_all(UNDO_DATA | UNDO_NAMES, 0);
	else if (!strcmp(what, "data"))
		undo_all(UNDO_DATA, 0);
	else if (!strcmp(what, "names"))
		undo_all(UNDO_NAMES, 0);
	else if (!strcmp(what, "mixed"))
		undo_all(UNDO_DATA | UNDO_NAMES, seed + 1);
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static int is_deadly(void)
{
	static const char *const kinds[] = {
		"kill", "power", "data", "names", "mixed"};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (!strcmp(what, kinds[i]))
			return 1;
	return 0;
}

/* Others may see now what it did. */
__attribute__((destructor)) static void end(void)
{
	if (!*root || at || !is_deadly())
		return;
	close(STDOUT_FILENO);
	raise(SIGSTOP);
	crash_die();
}

static void note(enum crash_call call, const char *path)
{
	char line[PATH_MAX + 64];
	int n;

	if (log_fd < 0)
		return;
	n = snprintf(
		line, sizeof line, "%lu %s %s\n", calls, names[call], path);
	syscall(SYS_write, log_fd, line, (size_t)n);
}

/* A sync may be when room is found missing, but folders have theirs. */
static int takes_room(enum crash_call call, const char *path)
{
	struct stat st;

	if (call == CRASH_SYNC)
		return !lstat(path, &st) && !S_ISDIR(st.st_mode);
	return call == CRASH_CREATE || call == CRASH_WRITE ||
	       call == CRASH_LINK || call == CRASH_MKDIR;
}

/* The disk is full; what fits of a write is written. */
static enum crash_verdict full(enum crash_call call, const char *path)
{
	if (calls < at || !takes_room(call, path))
		return CRASH_PASS;
	if (calls == at && call == CRASH_WRITE)
		return CRASH_PART;
	errno = ENOSPC;
	return CRASH_FAIL;
}

static int is_skipped(const char *path)
{
	if (!skip)
		return 0;
	if (*skip >= '0' && *skip <= '9')
		return syncs == strtoul(skip, NULL, 10);
	return !fnmatch(skip, path, 0);
}

static enum crash_verdict judge(enum crash_call call, const char *path)
{
	if (!strcmp(what, "full"))
		return full(call, path);
	if (!strcmp(what, "lie"))
		return call == CRASH_RENAME && (!at || calls == at)
			       ? CRASH_LIE
			       : CRASH_PASS;
	if (*what && calls == at) {
		errno = !strcmp(what, "EIO") ? EIO : ENOSPC;
		if (*what == 'E')
			return CRASH_FAIL;
		if (call == CRASH_WRITE)
			return CRASH_HALF;
		crash_die();
	}
	if (call == CRASH_SYNC && is_skipped(path))
		return CRASH_SKIP;
	return CRASH_PASS;
}

enum crash_verdict crash_enter(enum crash_call call, const char *path)
{
	pthread_mutex_lock(&lock);
	calls++;
	syncs += call == CRASH_SYNC;
	note(call, path);
	undo_begin(calls);
	return judge(call, path);
}

void crash_leave(void)
{
	int saved = errno;

	pthread_mutex_unlock(&lock);
	errno = saved;
}
