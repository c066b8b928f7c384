/*
 * Where the last pass left the core: made again from the tape beside the store,
 * or, when that does not lead to what HEAD says, restored from HEAD.
 */
#ifndef CMD_RUN_RESUME_H
#define CMD_RUN_RESUME_H

#include "cmd/run/pass.h"

/* Gives p its core, tape and book. */
int resume(struct pass *p, struct dl_err *e);
/* The tape leads where nobody can go on: the next pass is not to follow it. */
void resume_forget(struct pass *p);

#endif
