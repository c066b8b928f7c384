/*
 * What the core was told and has said, as far as a spool shows it: kept by
 * every event and action, of this pass and of those that the tape replays.
 */
#ifndef CMD_RUN_BOOK_H
#define CMD_RUN_BOOK_H

#include "state/replay.h"
#include "sync/sync.h"

struct book_answer {
	uint64_t seq; /* of the last push answered; 0: none */
	enum dl_taken word;
	enum dl_refusal reason;
};

struct book_learner {
	char name[DL_NAME_MAX + 1];
	uint64_t instance;
	uint64_t clock;		    /* that welcome gave it */
	int here;		    /* has joined, and not left */
	int drained;
	struct dl_version *version; /* P: what it holds */
	struct book_answer *answer; /* P */
};

struct book {
	uint32_t fragments;
	struct book_learner **learner; /* in byte order of names */
	size_t learners;
	uint64_t *held; /* the pushes that the core has not released */
	size_t helds;
	uint64_t ids; /* the highest of all that it ever got */
	struct dl_sync_action *merge; /* in hand: to be committed */
	size_t merges;
	struct book_answer last; /* of any push */
};

/* For the events and actions of a core of so many fragments from its start. */
void book_begin(struct book *b, uint32_t fragments);
void book_release(struct book *b);
void book_event(struct book *b, const struct dl_sync_event *ev);
void book_action(struct book *b, const struct dl_sync_action *a);

struct book_learner *book_find(const struct book *b, const char *name);
int book_holds(const struct book *b, uint64_t push);
/* The merge of fragment p in hand, or NULL. */
const struct dl_sync_action *book_merge(const struct book *b, uint32_t p);

/* Keeps b while a tape is replayed. */
struct dl_replay_watcher book_watcher(struct book *b);

#endif
