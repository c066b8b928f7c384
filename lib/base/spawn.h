/*
 * Starting another program: in a process group of its own, and with the
 * signals that a fresh process has, whatever this one does with them.
 */
#ifndef DL_BASE_SPAWN_H
#define DL_BASE_SPAWN_H

#include <spawn.h>
#include <sys/types.h>

#include "base/err.h"

/* Searches PATH for command[0]; the pid, which is the group's too, into *pid.
 * 66 when there is no such program, 71 when it cannot be run. */
int dl_spawn(char *const *command, char *const *env,
	const posix_spawn_file_actions_t *files, pid_t *pid, struct dl_err *e);
/* The same failures, known before anything is started. */
int dl_spawn_check(const char *program, struct dl_err *e);

#endif
