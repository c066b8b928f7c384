/*
 * What a service manager such as systemd is told by the datagrams of
 * sd_notify(3), without its library. All of it does nothing where none has
 * asked.
 */
#ifndef CMD_NOTIFY_H
#define CMD_NOTIFY_H

#include <stdint.h>

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment,
 * since children are none of the manager's business. One that cannot be used is
 * said and forgotten. */
void notify_begin(void);

void notify_ready(void);
/* Files are read again: call notify_ready when they are. */
void notify_reloading(void);
void notify_stopping(void);	      /* said once */
void notify_status(const char *line); /* for people */

/* A turn of the event loop: the only sign of life, so that a loop that hangs
 * gives none. Call it each turn, and turn at notify_wake at the latest. */
void notify_turn(int64_t now);
int64_t notify_wake(void); /* INT64_MAX: nobody watches */

#endif
