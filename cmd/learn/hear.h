/*
 * What a syncer says to a learner, as events of the core.
 */
#ifndef CMD_LEARN_HEAR_H
#define CMD_LEARN_HEAR_H

#include "link/conn.h"

/* For a connection whose ctx is the learner. */
extern const struct dl_conn_handlers hear_handlers;

#endif
