/*
 * A program's short visit to a syncer: connect, say something, wait for it to
 * be done.
 */
#ifndef CMD_CLIENT_H
#define CMD_CLIENT_H

#include "link/address.h"
#include "link/conn.h"
#include "link/loop.h"

struct client {
	struct dl_conn conn;
	int done; /* set by a handler: the visit is over, and was a success */
	/* private */
	char address[DL_ADDRESS_MAX];
	struct dl_child child;
	struct dl_loop loop;
	struct dl_err why;
	int over;
};

/* Connects; the handlers get ctx, a stays until the end. 64, 69 as
 * dl_address_connect has it. */
int client_open(struct client *c, const struct dl_address *a,
	enum dl_insecure allowed, const struct dl_conn_handlers *handlers,
	void *ctx, struct dl_err *e);
/* Works until a handler sets done (0), or the connection is over. */
int client_wait(struct client *c, struct dl_err *e);
void client_close(struct client *c);

/* What an `error` message says, as an error. */
int client_refused(const struct dl_message *m, struct dl_err *e);
/* Was it a refusal that would be the same next time? */
int client_is_final(int code);

#endif
