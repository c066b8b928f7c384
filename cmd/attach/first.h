/*
 * The first message on a bridge: who is to be let in.
 */
#ifndef CMD_ATTACH_FIRST_H
#define CMD_ATTACH_FIRST_H

#include "base/mem.h"
#include "link/message.h"

struct attach_rule {
	const char *name;      /* of the only learner; NULL: all are let in */
	int allowed[DL_ROLES]; /* who else */
};

/*
 * Reads from fd to the end of the first message, and maybe on: bytes gets all
 * of it. 76 when it is no hello, 77 when the rule does not let it in, 69 when
 * it does not come.
 */
int attach_first(int fd, const struct attach_rule *rule, struct dl_buf *bytes,
	struct dl_err *e);

#endif
