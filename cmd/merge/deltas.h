/*
 * What is merged: records of kind delta or push from any number of files, each
 * of one fragment by one learner.
 */
#ifndef CMD_MERGE_DELTAS_H
#define CMD_MERGE_DELTAS_H

#include "cmd/merge/base.h"
#include "cmd/merge/options.h"
#include "tensor/records.h"

struct delta {
	const struct dl_records *file;
	size_t record;
	uint32_t fragment;     /* of the layout */
	const char *name;      /* the learner's, or the file's */
	int numbered, counted; /* has dl.seq; has dl.steps and dl.tokens */
	uint64_t instance, seq;
	uint64_t steps, tokens;
};

struct deltas {
	struct dl_records *file;
	size_t files;
	struct delta *delta; /* by fragment, name, instance, seq */
	size_t n;
};

/* Opens all files and checks all headers. Close it also after a failure. */
int deltas_open(struct deltas *d, struct base *b, const struct merge_options *o,
	struct dl_err *e);
void deltas_close(struct deltas *d);

/* Those of fragment p; returns how many. */
size_t deltas_of(
	const struct deltas *d, uint32_t p, const struct delta **first);

/* Has somebody of that name any? */
int deltas_by(const struct deltas *d, const char *name);

const struct dl_records_entry *delta_entry(const struct delta *d);
/* Puts "FILE: record N: " before e's text; returns its code. */
int delta_at(const struct delta *d, struct dl_err *e);

#endif
