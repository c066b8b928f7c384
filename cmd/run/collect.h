/*
 * What a spool needs no more: versions that latest has not named for --keep and
 * nobody reads, what was refused and temporary files after --stale.
 */
#ifndef CMD_RUN_COLLECT_H
#define CMD_RUN_COLLECT_H

#include "cmd/run/pass.h"

/* What cannot be removed stays for the next pass. */
void collect(struct pass *p);

#endif
