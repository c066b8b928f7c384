/*
 * What a learner shows of itself: the status line.
 */
#ifndef CMD_LEARN_SHOW_H
#define CMD_LEARN_SHOW_H

struct learner;

/* When it is time, or asked for. */
void learner_show(struct learner *l, int asked);
/* The last line, before the end. */
void learner_show_end(struct learner *l);

#endif
