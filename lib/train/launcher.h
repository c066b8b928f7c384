/*
 * What launchers of MPI jobs (mpirun, srun) say in the environment of the
 * processes that they start.
 */
#ifndef DL_TRAIN_LAUNCHER_H
#define DL_TRAIN_LAUNCHER_H

/* Was this process started as one of several? */
int dl_launched(void);

/* Is "NAME=value" of a variable that says so? Whoever starts a program of its
 * own accord takes these away: it is not one of that job. */
int dl_launcher_says(const char *variable);

#endif
