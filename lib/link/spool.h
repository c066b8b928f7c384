/*
 * Spools: a run over a shared folder (dl-spool(5)), as the texts in it and the
 * names of its files. Pure: link/spool_file.h reads and writes them.
 *
 *	layout.tsv			the layout
 *	global/latest			struct dl_spool_latest
 *	global/P.E.N, update/P.E.N	records
 *	open/STEP.FRAGMENT		struct dl_spool_open
 *	learner/NAME			struct dl_spool_learner
 *	taken/NAME			struct dl_spool_taken
 *	new/NAME/STEP.FRAGMENT.SEQ.HASH a record of kind push, which also says
 *					dl.run, dl.learner and dl.instance
 *	new/NAME/.lock			held by the learner of that name
 *	tmp/				files being written
 *	end				somebody asks for the end of the run
 *
 * Texts begin with "# dl-spool 1", then "# key value" lines in any order, each
 * known key once and unknown ones passed over; then one line of column names
 * and tab-separated rows, one a fragment in order. Every line ends with a
 * newline. Numbers have one spelling: decimal, no zero in front.
 *
 * A parser returns 0, or 65 with the line and the fact and the struct empty;
 * what it fills is released with the matching _release.
 */
#ifndef DL_LINK_SPOOL_H
#define DL_LINK_SPOOL_H

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "sync/sync.h"

enum {
	DL_SPOOL_TEXT_MAX = 16 << 20,	  /* bytes of a text */
	DL_SPOOL_FRAGMENTS_MAX = 1 << 17, /* rows of a text */
	DL_SPOOL_WORD = 32,		  /* a word and its NUL */
	DL_SPOOL_NAME = 136,		  /* a file's name and its NUL */
};

/* Ending: push everything, then say drained. Final: the versions in latest are
 * the run's last; take them, then leave. Done: nothing more will happen. */
enum dl_spool_state {
	DL_SPOOL_RUNNING,
	DL_SPOOL_ENDING,
	DL_SPOOL_FINAL,
	DL_SPOOL_DONE,
	DL_SPOOL_STATES
};

/* The newest version of a fragment. */
struct dl_spool_global {
	struct dl_version version;
	uint64_t step;		/* of the round that made it */
	char hash[DL_HASH_HEX]; /* of global/P.E.N, and its bytes */
	uint64_t bytes;
	/* update/P.E.N, which makes it from version base; base 0.0, hash "" and
	 * no bytes when there is none. */
	struct dl_version base;
	char update[DL_HASH_HEX];
	uint64_t update_bytes;
};

/* global/latest: the run and its newest versions. */
struct dl_spool_latest {
	char run[DL_NAME_MAX + 1];
	char layout[DL_HASH_HEX];
	uint64_t h, tau;
	char apply[DL_SPOOL_WORD]; /* as dl-learn --apply has it; "" for none */
	int wait;
	char global[DL_SPOOL_WORD]; /* the codec of updates; "f32": none */
	uint64_t epoch, clock;
	enum dl_spool_state state;
	struct dl_spool_global *fragment;
	uint32_t fragments; /* P > 0 */
};

void dl_spool_latest_write(const struct dl_spool_latest *v, struct dl_buf *out);
int dl_spool_latest_parse(struct dl_spool_latest *v, const void *text, size_t n,
	struct dl_err *e);
void dl_spool_latest_release(struct dl_spool_latest *v);

enum dl_spool_doing {
	DL_SPOOL_TRAINING,
	DL_SPOOL_DRAINED, /* all that it had is in new/, and it makes no more */
	DL_SPOOL_LEAVING,
	DL_SPOOL_DOINGS
};

/* learner/NAME: what a learner says of itself. */
struct dl_spool_learner {
	uint64_t instance;
	uint64_t clock, steps, tokens; /* steps, tokens: of this instance */
	double loss;		       /* NaN when unknown */
	enum dl_spool_doing state;
	char layout[DL_HASH_HEX];   /* "": takes the run's */
	struct dl_version *version; /* what it holds; 0.0 for nothing */
	uint32_t fragments;	    /* P > 0 */
};

void dl_spool_learner_write(
	const struct dl_spool_learner *v, struct dl_buf *out);
int dl_spool_learner_parse(struct dl_spool_learner *v, const void *text,
	size_t n, struct dl_err *e);
void dl_spool_learner_release(struct dl_spool_learner *v);

/* What became of the pushes of one fragment. */
struct dl_spool_answer {
	uint64_t taken;	    /* last seq answered; 0: none. None up to it need be
			     * put again. */
	uint64_t settled;   /* up to here nothing need be kept */
	enum dl_taken word; /* of the push `taken`, never DL_TAKEN_SETTLED */
	enum dl_refusal reason;
};

/* taken/NAME: what the syncer has answered that learner. */
struct dl_spool_taken {
	uint64_t instance; /* whose pushes these are */
	uint64_t epoch;	   /* of the syncer that knows it */
	uint64_t clock;	   /* its clock when that epoch first saw it */
	struct dl_spool_answer *fragment;
	uint32_t fragments; /* P > 0 */
};

void dl_spool_taken_write(const struct dl_spool_taken *v, struct dl_buf *out);
int dl_spool_taken_parse(
	struct dl_spool_taken *v, const void *text, size_t n, struct dl_err *e);
void dl_spool_taken_release(struct dl_spool_taken *v);

/* open/STEP.FRAGMENT: who is asked to push; names in byte order, each once. */
struct dl_spool_open {
	char (*name)[DL_NAME_MAX + 1];
	size_t names;
};

void dl_spool_open_write(const struct dl_spool_open *v, struct dl_buf *out);
int dl_spool_open_parse(
	struct dl_spool_open *v, const void *text, size_t n, struct dl_err *e);
void dl_spool_open_release(struct dl_spool_open *v);
int dl_spool_open_has(const struct dl_spool_open *v, const char *name);

/* Names of files. Print returns out; parse returns 0, or -1 when s is none. */
struct dl_spool_push {
	uint64_t step, seq; /* seq > 0 */
	uint32_t fragment;
	char hash[DL_HASH_HEX]; /* of the whole file */
};

char *dl_spool_push_name(
	char out[DL_SPOOL_NAME], const struct dl_spool_push *v);
int dl_spool_push_parse(struct dl_spool_push *v, const char *s);

char *dl_spool_open_name(
	char out[DL_SPOOL_NAME], uint64_t step, uint32_t fragment);
int dl_spool_open_name_parse(const char *s, uint64_t *step, uint32_t *fragment);

char *dl_spool_version_name(
	char out[DL_SPOOL_NAME], uint32_t p, struct dl_version v);
int dl_spool_version_parse(const char *s, uint32_t *p, struct dl_version *v);

#endif
