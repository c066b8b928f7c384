/*
 * What a syncer shows of its run: the status line.
 */
#ifndef CMD_SERVE_SHOW_H
#define CMD_SERVE_SHOW_H

struct server;

/* When it is time, or asked for. */
void server_show(struct server *s, int asked);
/* The last line, before the end. */
void server_show_end(struct server *s);

#endif
