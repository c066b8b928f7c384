/*
 * What a learner says of itself to its syncer.
 */
#ifndef CMD_LEARN_SAY_H
#define CMD_LEARN_SAY_H

struct learner;

/* The first message of a connection. */
void say_hello(struct learner *l);
/* What comes too late for its round is not dropped then. */
void say_leaving(struct learner *l);

#endif
