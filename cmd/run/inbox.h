/*
 * The pushes that lie in a spool's new/, and how they get to the core. What
 * cannot be taken yet is left; what never can is set apart in refused/.
 */
#ifndef CMD_RUN_INBOX_H
#define CMD_RUN_INBOX_H

#include "cmd/run/roll.h"

struct inbox_push {
	char learner[DL_NAME_MAX + 1];
	char *path; /* new/LEARNER/STEP.FRAGMENT.SEQ.HASH */
	struct dl_spool_push name;
	uid_t owner; /* of the folder */
	enum { INBOX_WAITS, INBOX_TAKEN, INBOX_REFUSED } fate;
};

struct inbox {
	struct inbox_push *push; /* by learner, fragment, seq */
	size_t pushes;
};

/* Lists what is there. Before the learners' own files are read: each has
 * written there first what explains a push. */
int inbox_list(struct inbox *in, struct pass *p, struct dl_err *e);
void inbox_release(struct inbox *in);

/* First those of processes that are gone, whose names others have by now:
 * before roll_tell, since then it is the others whose pushes are taken. */
int inbox_take_gone(struct inbox *in, struct pass *p, const struct roll *r,
	struct dl_err *e);
/* Copies each push and tells the core; 73 or 74 when the copy fails. */
int inbox_take(struct inbox *in, struct pass *p, struct dl_err *e);
/* Are there pushes of that learner that were not taken? For roll_tell_last. */
int inbox_waits(void *inbox, const char *learner);
/* Removes from the spool what was taken, once the tape is durable. */
void inbox_clear(const struct inbox *in, struct pass *p);

#endif
