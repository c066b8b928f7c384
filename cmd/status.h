/*
 * The status line of long work: one line rewritten on a terminal, a plain line
 * now and then elsewhere, nothing with -q. A service manager gets it too.
 */
#ifndef CMD_STATUS_H
#define CMD_STATUS_H

#include <stdint.h>

struct cmd_status {
	int64_t due; /* private: when the next one may be shown */
};
#define CMD_STATUS_INIT                                                        \
	{                                                                      \
		0                                                              \
	}

/* Whether it is time to show one, so that none is made in vain. */
int cmd_status_due(const struct cmd_status *s);
void cmd_status_show(struct cmd_status *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* A loss in nats, or "-" when it is not known (NaN), into out; returns out. */
char *cmd_status_loss(char out[16], double loss);
/* Ends the line on a terminal; cmd_warn and its like do so by themselves. */
void cmd_status_end(void);

#endif
