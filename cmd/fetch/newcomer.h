/*
 * A newcomer to a run, before it takes part: it asks the syncer for the run's
 * clock and who gives their state, and takes the state of one that has seen
 * this clock, or of several when one is lost (dl-protocol(7), JOINING). When
 * nobody gives any, it begins with the syncer's values.
 */
#ifndef CMD_FETCH_NEWCOMER_H
#define CMD_FETCH_NEWCOMER_H

#include "cmd/fetch/donors.h"
#include "cmd/fetch/intake.h"
#include "cmd/fetch/visit.h"
#include "cmd/status.h"

struct newcomer_config {
	struct dl_loop *loop;
	const struct dl_address *syncer; /* unix or tcp */
	enum dl_insecure insecure;	 /* of it */
	int wait;			 /* for it when it is away */
	const struct dl_key *key;	 /* that it comes to peers with */
	const char *run, *name;		 /* or "" */
	/* As struct intake has it. */
	int (*create)(void *ctx, uint64_t bytes, struct dl_err *e);
	void *ctx;
};

enum newcomer_result {
	NEWCOMER_BUSY,
	NEWCOMER_STATE, /* the file that was created is one; intake says more */
	NEWCOMER_NOTHING, /* there is none to be had; why says more */
};

struct newcomer {
	struct newcomer_config config;
	enum newcomer_result result;
	struct dl_err why;
	char run[DL_NAME_MAX + 1];
	struct dl_layout layout; /* once the syncer has said it */
	struct intake intake;
	char from[DL_NAME_MAX + 1]; /* the last donor */
	/* private */
	enum { NEWCOMER_PAUSE, NEWCOMER_ASK, NEWCOMER_TAKE } doing;
	struct dl_errands *errands;
	struct visit visit;
	struct donors donors;
	struct donor *donor; /* of NEWCOMER_TAKE */
	uint64_t clock;	     /* the run's */
	int heard;	     /* the syncer has said who gives */
	unsigned silent;     /* visits in a row to a syncer that is not there */
	int64_t away_at;     /* since when it is not; INT64_MAX: it is */
	unsigned failures;   /* visits to donors since something was gained */
	uint64_t got;	     /* at the last of them */
	uint64_t before;     /* bytes fetched of donors before this one */
	int64_t until;	     /* of a pause; when a donor must have said more */
	char key[DL_KEY_TEXT + 1];
	struct cmd_status status;
};

/* Begins; the strings and what config points to stay until release. 71. */
int newcomer_begin(
	struct newcomer *n, const struct newcomer_config *c, struct dl_err *e);
/* Before each turn of the loop, until the result is there. */
void newcomer_work(struct newcomer *n, int64_t now);
int64_t newcomer_wake(const struct newcomer *n);
void newcomer_release(struct newcomer *n);

#endif
