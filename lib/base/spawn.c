#include "base/spawn.h"

#include <errno.h>
#include <signal.h>

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
	if (why)
		return dl_fail_sys(e, why == ENOENT ? DL_NOINPUT : DL_OSERR,
			"%s", command[0]);
	return 0;
}
