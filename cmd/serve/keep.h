/*
 * The folder of a run's checkpoints: RUN.EPOCH.CLOCK.tar.zst. Others' files may
 * be there too, and stay.
 */
#ifndef CMD_SERVE_KEEP_H
#define CMD_SERVE_KEEP_H

#include <stdint.h>

#include "base/err.h"

/* The path of one, the caller's to free. */
char *keep_name(
	const char *folder, const char *run, uint64_t epoch, uint64_t clock);

/*
 * Removes all of that run but the newest n > 0 up to that epoch and clock:
 * those after it are of another that had its name, or of another syncer of it,
 * and would be newer than all that are yet to come. 74 when one cannot be.
 */
int keep_newest(const char *folder, const char *run, uint64_t epoch,
	uint64_t clock, uint64_t n, struct dl_err *e);

/* Removes what that run's syncers have begun and, killed, not finished. */
void keep_clean(const char *folder, const char *run);

#endif
