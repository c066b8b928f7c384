/*
 * What a spool shows of the run: versions, open rounds, and what became of
 * pushes. Everything follows from the core, so what a pass could not show the
 * next one does.
 */
#ifndef CMD_RUN_PUBLISH_H
#define CMD_RUN_PUBLISH_H

#include "cmd/run/pass.h"

/* Makes the folders of the spool, and its layout. */
int publish_begin(struct pass *p, struct dl_err *e);
/* Reads what was shown last; 65 or 64 when it is of another run. */
int publish_read(struct pass *p, struct dl_err *e);
/* What a learner that had that version of fragment f has read to have the
 * other, as far as is still known. */
uint64_t publish_bytes(const struct pass *p, uint32_t f, struct dl_version had,
	struct dl_version has);
int publish(struct pass *p, struct dl_err *e);

#endif
