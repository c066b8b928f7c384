/*
 * A spool as the link of a learner (dl-spool(5)), private to spool*.c. Now and
 * then it looks at the folder, and what has changed since the last look becomes
 * events of the core. All reading and writing there is done by errands, since
 * the folder may be on a network: the trainer never waits for it.
 */
#ifndef CMD_LEARN_SPOOL_H
#define CMD_LEARN_SPOOL_H

#include "cmd/learn/learner.h"
#include "link/errand.h"
#include "link/spool.h"
#include "link/spool_file.h"

struct spool_link {
	struct learner *learner;
	struct dl_errands *errands;
	int lock;		       /* holds the name */
	struct dl_spool_latest latest; /* no fragments: not seen yet */
	uint64_t epoch;		       /* of latest, once it was seen */
	int64_t look_at;	       /* INT64_MAX: looking */
	unsigned failures;	       /* looks in a row */
	int ending;		       /* the core knows that the run ends */
	struct spool_fragment {
		struct dl_spool_answer answer; /* as the core knows it */
		struct dl_version got;	       /* given to the core */
		int final;		       /* given as the final word */
		int tried;		       /* since the last look */
	} * fragment;			       /* P */
	int getting;
	unsigned gets_failed; /* in a row */
	enum dl_spool_doing doing;
	int stale;	   /* learner/NAME says less than is known */
	int64_t told_at;   /* when it was written last */
	int put_failed;	   /* it has been said that puts fail */
	int64_t closes_at; /* when parting ends, come what may */
};

/* What a look finds. */
struct look {
	struct dl_errand errand;
	struct spool_link *link;
	const char *path, *name;
	int with_layout;
	int *lock;
	int code;
	struct dl_err err;
	struct dl_spool_latest latest;
	struct dl_buf layout;	     /* the text, if asked for */
	struct dl_spool_taken taken; /* no fragments: there is none */
	/* Rounds that ask for this learner. */
	struct look_open {
		uint64_t step;
		uint32_t fragment;
	} * open;
	size_t opens;
};

/* spool_look.c: an errand whose done gets the struct look, with code and err
 * or what was found; look_free afterwards. */
struct look *look_new(struct spool_link *s, void (*done)(struct dl_errand *));
void look_free(struct look *look);

/* spool_get.c: gets the next values that the core lacks, if nothing is being
 * got. */
void spool_get(struct spool_link *s);

/* spool_put.c: learner/NAME, if it is stale or old enough to be doubted, and
 * pushes. */
void spool_tell(struct spool_link *s, int64_t now);
void spool_put(struct spool_link *s, struct push *push);
/* Once more those that could not be put. */
void spool_put_again(struct spool_link *s);

#endif
