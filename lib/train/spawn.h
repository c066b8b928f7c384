/*
 * Starting a trainer: standard output to standard error, the learner's end of a
 * socket as descriptors 3 and 4, and a few variables more in its environment.
 */
#ifndef DL_TRAIN_SPAWN_H
#define DL_TRAIN_SPAWN_H

#include <sys/types.h>

#include "base/err.h"

/* As dl_spawn. more is "NAME=value", NULL-terminated. */
int dl_trainer_spawn(char *const *command, const char *const *more, int talk,
	pid_t *pid, struct dl_err *e);

#endif
