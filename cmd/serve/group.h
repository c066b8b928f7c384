/*
 * Groups: learners that share a key, each with a number and the name that it
 * makes.
 */
#ifndef CMD_SERVE_GROUP_H
#define CMD_SERVE_GROUP_H

#include "cmd/serve/peer.h"

/*
 * Gives peer, which has a group's key, a name and slot: its own when its
 * process is here already, else the lowest that is free, else that of the
 * member that has been silent longest, which then has to show that it lives. 77
 * when there is none, as all have been heard since peer came.
 */
int group_place(struct peer *peer, struct dl_err *e);

#endif
