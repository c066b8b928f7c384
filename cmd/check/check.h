/*
 * dl-learn --check: does a trainer keep to dl-trainer(7)? Each rule is tried on
 * a trainer of its own, freshly started, so that what breaks one says nothing
 * of the next.
 */
#ifndef CMD_CHECK_CHECK_H
#define CMD_CHECK_CHECK_H

#include "cmd/check/values.h"
#include "link/loop.h"
#include "train/host.h"
#include "train/scratch.h"

struct check_options {
	const char *model, *layout; /* files; layout may be NULL */
	char *const *command;
	const char *name;
	uint64_t slot, seed;
	const char *scratch;
	int64_t stop_ns, silence_ns;
};

struct check {
	const struct check_options *options;
	struct dl_layout layout;
	struct dl_loop loop;
	struct dl_scratch scratch;
	float **model; /* its values, as are all float ** here */
	float **got;   /* what the trainer sent last */
	char *path;    /* the model's file, as a run has it */
	struct dl_host *host;
	struct dl_err died; /* why the trainer did; code 0: it lives */
	uint64_t tokens;    /* of the last step */
	double loss;	    /* likewise */
	int64_t step_ns;    /* how long it took */
	int varies;	    /* the same steps differ */
};

/* What a rule finds. */
enum finding {
	FINDING_OK,
	FINDING_WRONG,	 /* e says what the trainer did */
	FINDING_REFUSED, /* it may, and e is what it said */
	FINDING_VARIES,	 /* the same steps lead elsewhere: e says where */
	FINDING_SKIPPED, /* another rule is not ok */
};

/* One line a rule on standard output; an exit code. */
int check_run(const struct check_options *o);

#endif
