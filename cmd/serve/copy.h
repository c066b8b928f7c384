/*
 * Checkpoints for those who ask (dl-sync checkpoint): what HEAD names is packed
 * by a thread while rounds go on, into a file without a name, and fetched from
 * there. One at a time, as each takes as much room as the store.
 */
#ifndef CMD_SERVE_COPY_H
#define CMD_SERVE_COPY_H

#include "cmd/serve/peer.h"

void copy_begin(struct peer *peer, int64_t now);
/* It has said fetch. */
int copy_fetch(struct peer *peer, const struct dl_message *m, struct dl_err *e);
/* Sends it away when it takes nothing, or its file cannot be had. */
void copy_work(struct peer *peer, int64_t now);
/* It goes. */
void copy_leave(struct peer *peer);

#endif
