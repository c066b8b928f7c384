/*
 * Hashes of the store's files, made after their commits, which do not wait for
 * them: by a thread that takes only what processors have left over. HEAD says
 * them with the next commit.
 */
#ifndef CMD_SERVE_HASHING_H
#define CMD_SERVE_HASHING_H

#include <stdint.h>

#include "base/err.h"

struct server;

int hashing_begin(struct server *s, struct dl_err *e);
/* Fragment p was committed; what is not hashed by its next commit never is. */
void hashing_add(struct server *s, uint32_t p);
/* Gives up what is not done, and has HEAD say the rest. */
void hashing_end(struct server *s);

#endif
