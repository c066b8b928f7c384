/*
 * Whose turn it is where the trainer has all processors: a learner that wakes
 * up would be given one of them at once, in the middle of a boundary. As a
 * batch process (sched(7)) it waits until one is free or a trainer's slice of
 * time is over. Whoever started it with another policy is not overruled.
 */
#ifndef CMD_LEARN_BACKGROUND_H
#define CMD_LEARN_BACKGROUND_H

/* This thread is in the background from now on; 0 when it stays as it is. */
int background_enter(void);
/* After a background_enter that was not 0: it is as it was, and so is what it
 * starts. */
void background_leave(void);

#endif
