/*
 * One page over HTTP, for Prometheus on this machine: a request at a time, each
 * with little time.
 */
#ifndef CMD_STAT_HTTP_H
#define CMD_STAT_HTTP_H

#include "base/mem.h"
#include "link/address.h"

/*
 * Answers "GET /metrics" at a, tcp of loopback, for ever: put appends the page
 * to out, or fails, and then the answer is 503 and the reason is noted. Returns
 * 64 when it is another address, else with why it cannot listen.
 */
int http_serve(struct dl_address *a,
	int (*put)(void *ctx, struct dl_buf *out, struct dl_err *e), void *ctx,
	struct dl_err *e);

#endif
