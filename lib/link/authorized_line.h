/*
 * One line of authorized_learners. Private to authorized*.c.
 */
#ifndef DL_LINK_AUTHORIZED_LINE_H
#define DL_LINK_AUTHORIZED_LINE_H

#include "link/authorized.h"

/* Takes line, which is cut to words, apart; a->name is "" when it says nothing.
 * 65 with the fact, and then nothing is to be released. */
int dl_authorized_line(struct dl_authorized *a, char *line, struct dl_err *e);

#endif
