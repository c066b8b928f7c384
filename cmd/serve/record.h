/*
 * --record: every push as it came, for who makes its rounds again.
 */
#ifndef CMD_SERVE_RECORD_H
#define CMD_SERVE_RECORD_H

#include "base/err.h"
#include "tensor/record.h"

struct peer;

/* Writes peer's push, of header h and those data, to the folder of the options
 * as a record that says whose it is; the file is named by its BLAKE2b. */
int record_push(const struct peer *peer, const struct dl_header *h,
	const unsigned char *data, struct dl_err *e);

#endif
