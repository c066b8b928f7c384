/*
 * What tests of connections over socket pairs share: the sockets, and what
 * crosses them.
 */
#ifndef TESTS_LINK_PAIR_H
#define TESTS_LINK_PAIR_H

#include <stddef.h>
#include <stdint.h>

#include "link/conn.h"

/* Two ends that do not block. With a send buffer of so many bytes each; 0: the
 * system's. */
void pair_sockets(int fd[2], int buffer);

/* The element i of the record of that seq. */
float pair_value(uint64_t seq, size_t i);
/* How many of the n values of that record are not. */
size_t pair_wrong(const float *values, size_t n, uint64_t seq);

/* Queues that record, a push of the fragment key; values is room for n, until
 * done is called. */
void pair_send_values(struct dl_conn *c, uint64_t key, uint64_t seq,
	float *values, size_t n, void (*done)(void *ctx, int sent), void *ctx);

/* Queues a message. */
void pair_send_end(struct dl_conn *c, uint64_t step);

#endif
