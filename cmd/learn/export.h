/*
 * The trainer's state in a scratch file, for those who join: one file, which
 * all who want it share. The trainer stands while it writes, so room is made
 * before, beside it, and the file is overwritten in place; never while somebody
 * reads it, and not again at once.
 */
#ifndef CMD_LEARN_EXPORT_H
#define CMD_LEARN_EXPORT_H

#include <stdint.h>

#include "learn/learn.h"
#include "link/errand.h"

struct learner;

struct export_file {
	char *path;
	int fd; /* of it; -1: there is none */
	struct export_room {
		struct dl_errand errand;
		struct learner *learner;
		int fd, code;
		uint64_t bytes;
		struct dl_err err;
	} room;
	enum {
		EXPORT_NOTHING, /* nobody has been expected yet */
		EXPORT_MAKING,	/* an errand makes room */
		EXPORT_TELLING, /* the trainer is to be told of it */
		EXPORT_READY,
		EXPORT_FAILED /* for good: why */
	} state;
	struct dl_err why;
	int asked;    /* the core has been asked for an export */
	int64_t next; /* not before */
	int64_t began;
	/* What the file holds, or is about to. */
	int whole;
	uint64_t clock, bytes;
	struct dl_version *versions; /* P */
	unsigned readers;
};

void export_init(struct export_file *x);
void export_release(struct export_file *x);
/* Bytes that the file may take in the scratch folder. */
uint64_t export_size(const struct learner *l);

/* Makes room for it, in the background, so that nobody waits for that later. */
void export_expect(struct learner *l);
/* It is wanted, of that clock or a later one. */
void export_want(struct learner *l, uint64_t clock, int64_t now);
/* When export_want should be tried again; INT64_MAX: never by itself. */
int64_t export_wake(const struct export_file *x, int64_t now);

/* For orders.c. The core's DL_LA_EXPORT: 0 if it is of no use any more; the
 * file that the trainer should be told of now, or NULL; and how the order to
 * write it ended. */
int export_note(struct learner *l, const struct dl_learn_action *a);
const char *export_prepare(struct learner *l, int64_t now);
void export_begin(struct export_file *x, int64_t now);
void export_done(struct learner *l, const struct dl_err *refused, int64_t now);
/* The trainer is gone: another has to be told, and asked. */
void export_lost(struct export_file *x);

#endif
