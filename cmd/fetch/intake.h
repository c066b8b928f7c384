/*
 * A peer's state as it is taken: the file that it becomes here, filled by one
 * donor after another. What has come whole of a fragment stays when its donor
 * is lost; the next gives the rest, if its state has the same tensors at the
 * same places.
 *
 * Nothing a donor says is taken on trust: its header is that of a state of the
 * layout, sizes agree, hashes are right, and numbers are numbers.
 */
#ifndef CMD_FETCH_INTAKE_H
#define CMD_FETCH_INTAKE_H

#include "cmd/fetch/take.h"
#include "tensor/groups.h"

struct intake {
	/* Set before. */
	const struct dl_layout *layout;
	/* Makes the file anew, empty, for that many bytes: its descriptor, open
	 * to read and write, which stays the maker's; or -1. */
	int (*create)(void *ctx, uint64_t bytes, struct dl_err *e);
	void *ctx;
	/* What there is. */
	uint64_t clock;		    /* the highest of a donor's state */
	struct dl_version *version; /* P: of what is whole */
	uint64_t fetched;	    /* bytes of parts, of use or not */
	uint64_t bytes, got;	    /* of the tensors, in all and whole */
	/* private */
	int fd;
	uint64_t room;		 /* of it */
	struct dl_buf head;	 /* the header's JSON, the first donor's */
	struct dl_header header; /* of head */
	struct dl_groups groups; /* none: no header has come */
	uint64_t data_at;	 /* where its data begin in the file */
	unsigned char *whole;	 /* a flag a group */
	struct intake_donor {
		enum {
			INTAKE_NOBODY,
			INTAKE_SIZE,
			INTAKE_HEAD,
			INTAKE_DATA
		} at;
		struct take take;
		uint64_t clock, bytes, head_size;
		struct dl_version *version;
		size_t *end;  /* a group: of its ranges in take */
		size_t group; /* that comes next */
	} donor;
};

void intake_release(struct intake *i);

/* A donor has a state ready, and is asked for it over c. 65 or 76: it is of no
 * use; or create's. */
int intake_state(struct intake *i, struct dl_conn *c,
	const struct dl_message *m, struct dl_err *e);
/* A part begins and is there; as handlers of a connection. 65 and 76 are the
 * donor's fault, 74 is not. */
int intake_begin(struct intake *i, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e);
int intake_part(struct intake *i, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, struct dl_err *e);
/* The donor is gone, or not wanted any more. */
void intake_lost(struct intake *i);

int intake_is_whole(const struct intake *i);
/* It is, and becomes a state file; 74. */
int intake_finish(struct intake *i, struct dl_err *e);

#endif
