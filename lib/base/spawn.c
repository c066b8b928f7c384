#include "base/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static int fail(const char *program, struct dl_err *e)
{
	return dl_fail_sys(
		e, errno == ENOENT ? DL_NOINPUT : DL_OSERR, "%s", program);
}

int dl_spawn(char *const *command, char *const *env,
	const posix_spawn_file_actions_t *files, pid_t *pid, struct dl_err *e)
{
	posix_spawnattr_t a;
	sigset_t none, all;
	int why;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&a);
	posix_spawnattr_setpgroup(&a, 0);
	posix_spawnattr_setsigmask(&a, &none);
	posix_spawnattr_setsigdefault(&a, &all);
	posix_spawnattr_setflags(&a, POSIX_SPAWN_SETPGROUP |
					     POSIX_SPAWN_SETSIGMASK |
					     POSIX_SPAWN_SETSIGDEF);
	why = posix_spawnp(pid, command[0], files, &a, command, env);
	posix_spawnattr_destroy(&a);
	errno = why;
	return why ? fail(command[0], e) : 0;
}

/* 0 when the file can be run, else the errno of trying. */
static int look(const char *file)
{
	struct stat st;

	if (stat(file, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return access(file, X_OK) ? errno : 0;
}

/* As posix_spawnp searches: a file that may not be run is the reason only when
 * no later folder has another. */
static int look_along(const char *path, const char *program)
{
	int why = ENOENT;

	for (;;) {
		size_t n = strcspn(path, ":");
		char *file = dl_sprintf(
			"%.*s%s%s", (int)n, path, n ? "/" : "", program);
		int found = look(file);

		free(file);
		if (!found)
			return 0;
		if (found == EACCES)
			why = EACCES;
		if (!path[n])
			return why;
		path += n + 1;
	}
}

int dl_spawn_check(const char *program, struct dl_err *e)
{
	const char *path = getenv("PATH");

	if (!*program || strchr(program, '/'))
		errno = look(program);
	else
		errno = look_along(path ? path : "/bin:/usr/bin", program);
	return errno ? fail(program, e) : 0;
}
