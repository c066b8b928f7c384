/*
 * The options that shape a program's links.
 */
#ifndef CMD_LINK_H
#define CMD_LINK_H

#include "link/address.h"

enum {
	LINK_BUFFERS = 1024,
	LINK_CONGESTION,
	DATA_RATE,
	DATA_STREAMS,
	DATA_WINDOW
};

/* Entries of getopt_long's tables for all of them. */
#define LINK_LONG                                                              \
	{"buffers", required_argument, NULL, LINK_BUFFERS},                    \
	{                                                                      \
		"congestion", required_argument, NULL, LINK_CONGESTION         \
	}

/* Takes the option if it is one of them, and says so; exits 64 when its
 * argument is bad, or not to be had on this system. */
int link_option(struct dl_tcp *t, int opt);

/* Sets up what is tcp of n addresses; exits 64 when options were given and
 * none is. */
void link_set_up(struct dl_address *a, size_t n, const struct dl_tcp *t);

/* --insecure was given, once or once more. */
void link_insecure(enum dl_insecure *allowed);
/* Exits 64 when --insecure was given and none of n addresses is plain tcp. */
void link_allow(const struct dl_address *a, size_t n, enum dl_insecure allowed);

/* How data is carried; 0: not given. */
struct data_options {
	uint64_t rate; /* bytes a second */
	uint64_t streams, window;
};

#define DATA_LONG                                                              \
	{"rate", required_argument, NULL, DATA_RATE},                          \
		{"streams", required_argument, NULL, DATA_STREAMS},            \
	{                                                                      \
		"window", required_argument, NULL, DATA_WINDOW                 \
	}

/* As link_option. */
int data_option(struct data_options *d, int opt);

/* After the last option: exits 64 when there is a window without streams, and
 * fills in the usual one. */
void data_check(struct data_options *d);

#endif
