/*
 * The preface of a session: one clear line each way, which says what the
 * handshake will be. Pure.
 *
 *	initiator: dl-tools VERSIONS SUITES RUN
 *	responder: dl-tools VERSION SUITE, or error CODE TEXT
 *
 * VERSIONS and SUITES are lists with commas, best first; RUN is the name of a
 * run or "-" for whichever is here; CODE is an exit code. Both lines as sent,
 * with their newlines, are the handshake's prologue: what somebody changed on
 * the way makes it fail.
 */
#ifndef DL_LINK_PREFACE_H
#define DL_LINK_PREFACE_H

#include <stddef.h>

#include "base/err.h"
#include "link/cipher.h"

enum {
	DL_PREFACE_VERSION = 1,
	DL_PREFACE_LINE = 255, /* most bytes of a line, its newline included */
};

/* What somebody is told who does not begin with such a line. */
extern const char dl_preface_wanted[];

/*
 * The line at the front of n received bytes: *used is its size with the
 * newline, or 0 while it is incomplete. 76 as soon as it is too long or has a
 * byte that is no printing ASCII.
 */
int dl_preface_line(const char *p, size_t n, size_t *used, struct dl_err *e);

/* The initiator's line: what this machine has, for run (NULL: any). Returns its
 * size; no NUL follows. */
size_t dl_preface_ask(char out[DL_PREFACE_LINE], const char *run);

/*
 * The responder's answer to the n bytes of a line, *out_n bytes: the choice, or
 * why there is none, then 76, or 65 for another run. It takes the first version
 * and the first suite of the initiator's that it has, for the run that is here.
 */
int dl_preface_answer(char out[DL_PREFACE_LINE], size_t *out_n,
	enum dl_suite *suite, const char *line, size_t n, const char *run,
	struct dl_err *e);

/*
 * The initiator reads the n bytes of the answer: the choice, which is one that
 * it offered, or 76; or a refusal's code.
 */
int dl_preface_accept(
	enum dl_suite *suite, const char *line, size_t n, struct dl_err *e);

/* The code of a line that refuses: 65, 75, 77, else 76; 0 when it is no such
 * line. Nobody has proven its words. */
int dl_preface_refused(const char *line, size_t n, struct dl_err *e);

/* "error CODE TEXT\n", cut to fit, and controls out of it: its size. */
size_t dl_preface_refuse(char out[DL_PREFACE_LINE], int code, const char *text);

#endif
