/*
 * What those who come by a session may do: authorized_learners, read at the
 * start and again at SIGHUP. Whom a unix socket or plain tcp lets in may do
 * everything.
 */
#ifndef CMD_SERVE_RIGHTS_H
#define CMD_SERVE_RIGHTS_H

#include "cmd/serve/peer.h"

/* Reads the file of the options, if there is one. */
int rights_read(struct server *s, struct dl_err *e);
/* Warns of fragments that the layout does not have, and says how many keys were
 * read. */
void rights_say(const struct server *s);
/* The same anew: sessions whose line is gone or has changed end. A file that
 * cannot be taken changes nothing. */
void rights_reread(struct server *s, int64_t now);

/* May peer come as its hello says? 77 with the reason; else its rights are
 * known, and it has a name that is its key's. */
int rights_hello(
	struct peer *peer, const struct dl_message *m, struct dl_err *e);
int rights_may_push(const struct peer *peer, uint32_t fragment);

/* Ends the sessions whose time is over. */
void rights_work(struct server *s, int64_t now);
int64_t rights_wake(const struct server *s, int64_t now);

#endif
