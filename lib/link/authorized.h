/*
 * authorized_learners: who may come by a session, and what each may do
 * (dl-authorized(5)). One key a line:
 *
 *	PUBLICKEY NAME [OPTION...]
 *
 * A key with max=N is a group's: its learners are NAME.0 to NAME.N-1, and the
 * number is the data slot.
 */
#ifndef DL_LINK_AUTHORIZED_H
#define DL_LINK_AUTHORIZED_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "link/key.h"
#include "sync/sync.h"

enum {
	DL_AUTHORIZED_GROUP = 10000,  /* most learners of a key */
	DL_AUTHORIZED_LINE = 4096,    /* bytes of a line */
	DL_AUTHORIZED_FILE = 4 << 20, /* bytes of a file */
};

struct dl_authorized {
	unsigned char key[DL_KEY];
	char name[DL_NAME_MAX + 1];
	uint32_t max;	  /* of a group; 0: one learner, called name */
	uint64_t rate;	  /* bytes a second that it may send; 0: any */
	int64_t expires;  /* wall-clock nanoseconds; INT64_MAX: never */
	int observer;	  /* may only take the model */
	int end;	  /* may end the run */
	size_t ranges;	  /* of fragments that it may push; 0: all */
	struct dl_range { /* both ends belong to it */
		uint32_t first, last;
	} * range;   /* rising, apart */
	size_t line; /* where it stands, from 1 */
};

struct dl_authorized_list {
	struct dl_authorized *entry; /* by key */
	size_t entries;
};
#define DL_AUTHORIZED_INIT                                                     \
	{                                                                      \
		NULL, 0                                                        \
	}

/* The file's text, n bytes; 65 with "PLACE:LINE: fact", and then l is empty. */
int dl_authorized_parse(struct dl_authorized_list *l, const char *text,
	size_t n, const char *place, struct dl_err *e);
/* The file: 66 without one, 77 when others can write it or it is somebody
 * else's, 65 as above. */
int dl_authorized_read(
	struct dl_authorized_list *l, const char *path, struct dl_err *e);
void dl_authorized_release(struct dl_authorized_list *l);

/* Whose key that is; NULL when it is nobody's. Valid as long as l. */
const struct dl_authorized *dl_authorized_find(
	const struct dl_authorized_list *l, const unsigned char key[DL_KEY]);

/* Do both, of which either may be NULL, allow the same? */
int dl_authorized_same(
	const struct dl_authorized *a, const struct dl_authorized *b);

int dl_authorized_may_push(const struct dl_authorized *a, uint32_t fragment);

/* What one with that key asks for by calling itself name. */
enum dl_claim {
	DL_CLAIM_NOT,	 /* the name is not the key's */
	DL_CLAIM_NAME,	 /* the learner's own */
	DL_CLAIM_ANY,	 /* the group's: any of its names will do */
	DL_CLAIM_MEMBER, /* of the group: *slot is its number */
};
enum dl_claim dl_authorized_claim(
	const struct dl_authorized *a, const char *name, uint32_t *slot);

/* The name of a group's member; returns out. */
char *dl_authorized_member(char out[DL_NAME_MAX + 1],
	const struct dl_authorized *a, uint32_t slot);

#endif
