/*
 * What a trainer says to its learner, a line of text at a time
 * (dl-trainer(7)). Trainers are other people's programs: a line is bounded and
 * must be exactly one of these.
 */
#ifndef DL_TRAIN_LINE_H
#define DL_TRAIN_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	DL_LINE_MAX = 1024, /* bytes, newline aside */
	DL_TRAINER_PROTOCOL = 1,
};

enum dl_line_kind {
	DL_LINE_READY, /* ready 1 */
	DL_LINE_STEP,  /* step TOKENS LOSS: at a step boundary */
	DL_LINE_OK,    /* ok */
	DL_LINE_ERROR, /* error TEXT */
};

struct dl_line {
	enum dl_line_kind kind;
	uint64_t tokens;
	double loss;		/* NaN when it is not a finite number */
	char text[DL_LINE_MAX]; /* of an error, scrubbed */
};

/* The n bytes at s, without the newline; 76 names the fact. */
int dl_line_parse(
	struct dl_line *out, const char *s, size_t n, struct dl_err *e);

#endif
