/*
 * A newcomer's visit to its syncer or to a peer: a connection whose host is
 * looked up beside the loop, and which begins with a hello.
 */
#ifndef CMD_FETCH_VISIT_H
#define CMD_FETCH_VISIT_H

#include "link/address.h"
#include "link/conn.h"
#include "link/errand.h"
#include "link/loop.h"

struct visit {
	struct dl_errand errand; /* first; all is private but conn */
	struct dl_conn conn;
	struct dl_loop *loop;
	enum dl_insecure insecure;
	const struct dl_conn_handlers *handlers;
	void *ctx;
	struct dl_address address; /* then with numbers for the host */
	unsigned nth;
	struct dl_message hello;
	struct dl_handshake_config session;
	enum { VISIT_NONE, VISIT_LOOKUP, VISIT_OPEN, VISIT_OVER } state;
	int opened;	   /* it got as far as a connection */
	struct dl_err why; /* it is over */
};

/*
 * Begins one, of which there is none: to the nth address of a's host, as
 * dl_address_resolve counts. The strings of hello live until the visit is over;
 * loop, handlers and ctx have been set.
 */
void visit_begin(struct visit *v, struct dl_errands *errands,
	const struct dl_address *a, unsigned nth,
	const struct dl_message *hello);
/* Before each turn of the loop: 0, or why the visit is over. */
int visit_work(struct visit *v, int64_t now, struct dl_err *why);
int64_t visit_wake(const struct visit *v);
/* Hangs up, unless the host is still being looked up. */
void visit_end(struct visit *v);

#endif
