/*
 * The door: which of those who connect over a network are let in to say who
 * they are. Pure; the caller brings the time.
 *
 * As WireGuard has it, each source may begin so many handshakes: an IPv4
 * address, or an IPv6 network of 64 bits, since who has one address there has
 * them all. Learners of one machine or behind one NAT share a bucket, and come
 * back together. Sources are remembered in a table that does not grow: a new
 * one takes the place of the one whose bucket is the fullest.
 */
#ifndef DL_LINK_DOOR_H
#define DL_LINK_DOOR_H

#include <stddef.h>
#include <stdint.h>

#include "base/num.h"
#include "link/bucket.h"

struct sockaddr;

enum {
	DL_DOOR_BURST = 64,    /* handshakes of one source at once */
	DL_DOOR_RATE = 20,     /* more of them a second */
	DL_DOOR_SOURCES = 512, /* remembered */
	DL_DOOR_TIME = 5,      /* seconds until hello has to be there */
	DL_DOOR_BYTES = 65536, /* and how many it may take */
	DL_DOOR_INSIDE = 256,  /* who have not said hello, at most */
};

struct dl_door {
	struct dl_source {
		unsigned char prefix[8]; /* IPv4: its address, then zeroes */
		int family;
		struct dl_bucket bucket;
	} source[DL_DOOR_SOURCES]; /* private; all zeroes: nobody came yet */
};

/*
 * One comes from that address, whose length is right for its family: 1 when it
 * may try, 0 when its source has tried too often. Local ones (AF_UNIX) always
 * may.
 */
int dl_door_knock(
	struct dl_door *d, const struct sockaddr *address, int64_t now);

#endif
