#include "train/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

extern char **environ;

static int same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* The environment with more in it; strings are borrowed. */
static char **merge_environ(const char *const *more)
{
	size_t have = 0, added = 0, n = 0;
	char **out;

	while (environ[have])
		have++;
	while (more[added])
		added++;
	out = dl_alloc_array(have + added + 1, sizeof *out);
	for (size_t i = 0; i < have; i++) {
		size_t j = 0;

		while (j < added && !same_name(more[j], environ[i]))
			j++;
		if (j == added)
			out[n++] = environ[i];
	}
	for (size_t j = 0; j < added; j++)
		out[n++] = (char *)more[j];
	return out;
}

/* What the learner does with signals is nothing to the trainer. */
static void set_attributes(posix_spawnattr_t *a)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setpgroup(a, 0);
	posix_spawnattr_setsigmask(a, &none);
	posix_spawnattr_setsigdefault(a, &all);
	posix_spawnattr_setflags(a, POSIX_SPAWN_SETPGROUP |
					    POSIX_SPAWN_SETSIGMASK |
					    POSIX_SPAWN_SETSIGDEF);
}

int dl_spawn(char *const *command, const char *const *more, int talk,
	pid_t *pid, struct dl_err *e)
{
	/* Out of the way of 3 and 4, which must not be closed on exec. */
	int high = fcntl(talk, F_DUPFD_CLOEXEC, 10), why;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	char **env;

	if (high < 0)
		return dl_fail_sys(e, DL_OSERR, "%s", command[0]);
	env = merge_environ(more);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, 2, 1);
	posix_spawn_file_actions_adddup2(&files, high, 3);
	posix_spawn_file_actions_adddup2(&files, high, 4);
	posix_spawnattr_init(&attributes);
	set_attributes(&attributes);
	why = posix_spawnp(pid, command[0], &files, &attributes, command, env);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	free(env);
	close(high);
	errno = why;
	if (why)
		return dl_fail_sys(e, why == ENOENT ? DL_NOINPUT : DL_OSERR,
			"%s", command[0]);
	return 0;
}
