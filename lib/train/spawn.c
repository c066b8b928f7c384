#include "train/spawn.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spawn.h"
#include "train/launcher.h"

extern char **environ;

static int same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

/* The environment with more in it, and nothing that a launcher of this process
 * said; strings are borrowed. */
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
		if (j == added && !dl_launcher_says(environ[i]))
			out[n++] = environ[i];
	}
	for (size_t j = 0; j < added; j++)
		out[n++] = (char *)more[j];
	return out;
}

int dl_trainer_spawn(char *const *command, const char *const *more, int talk,
	pid_t *pid, struct dl_err *e)
{
	/* Out of the way of 3 and 4, which must not be closed on exec. */
	int high = fcntl(talk, F_DUPFD_CLOEXEC, 10), code;
	posix_spawn_file_actions_t files;
	char **env;

	if (high < 0)
		return dl_fail_sys(e, DL_OSERR, "%s", command[0]);
	env = merge_environ(more);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, 2, 1);
	posix_spawn_file_actions_adddup2(&files, high, 3);
	posix_spawn_file_actions_adddup2(&files, high, 4);
	code = dl_spawn(command, env, &files, pid, e);
	posix_spawn_file_actions_destroy(&files);
	free(env);
	close(high);
	return code;
}
