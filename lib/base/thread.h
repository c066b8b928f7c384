/*
 * Threads beside the one that a program begins with.
 */
#ifndef DL_BASE_THREAD_H
#define DL_BASE_THREAD_H

#include <pthread.h>

/* Starts run(arg) in a thread that takes no signals: those are for the first.
 * Not 0 when there can be no more. */
int dl_thread_start(pthread_t *thread, void *(*run)(void *arg), void *arg);

/* The calling thread goes on only in time that no other thread or process
 * wants, where the system has such a policy and lets it. It must hold no lock
 * that others may wait for. */
void dl_thread_idle(void);

#endif
