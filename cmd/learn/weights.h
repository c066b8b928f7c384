/*
 * The tensors of a learner: anchors, pushes that are not settled, globals that
 * have come, and the scratch files through which the trainer gets and gives
 * values. Each fragment is one packed f32 array (tensor/layout.h).
 *
 * Memory: an anchor a fragment, in runs with updates also the values that these
 * start from, and the buffers of pushes, in their codec, and globals, of which
 * at most three a fragment are kept for reuse.
 */
#ifndef CMD_LEARN_WEIGHTS_H
#define CMD_LEARN_WEIGHTS_H

#include "cmd/shelf.h"
#include "learn/learn.h"
#include "tensor/coded.h"
#include "tensor/layout.h"
#include "train/scratch.h"

/* A push: what it says and its delta, from DL_LA_COPY to the later of
 * DL_LA_RELEASE and the end of its sending. */
struct push {
	struct push *next;
	struct weights *owner;
	struct dl_learn_action what; /* the DL_LA_COPY */
	int written;		     /* the trainer has written its values */
	void *data;		     /* the delta, encoded; NULL until the
				      * values have been read */
	size_t bytes;		     /* of data */
	int settled;		     /* the core has released it */
	int sending;		     /* a connection reads it */
	int put;		     /* it is in the spool */
};

struct weights {
	const struct dl_layout *layout;
	struct dl_scratch *scratch;
	struct dl_quant quant; /* of pushes */
	enum dl_apply apply;   /* how the run applies what comes */
	float **anchor;	       /* P */
	struct base *base;     /* P; NULL: the run has no updates */
	struct came {
		float *values; /* NULL when none waits */
		struct dl_version version;
		enum came_file {
			CAME_UNWRITTEN,
			CAME_VALUES,
			CAME_DELTA /* less the anchor as it is */
		} file;		   /* the one to apply has this of it */
	} * came; /* P */
	struct push *push;
	struct shelf shelf;
};

void weights_init(struct weights *w, const struct dl_layout *layout,
	struct dl_scratch *scratch, enum dl_codec codec);
void weights_release(struct weights *w);

/* Keeps a global that has come, the newest a fragment. */
void weights_came(struct weights *w, uint32_t p, struct dl_version version,
	float *values);

/* Updates may come from now on, or no more. */
void weights_expect_updates(struct weights *w, int expect);
/* A welcome: what was called origins[p] is versions[p] from now on, and what is
 * newer than that is lost. */
void weights_rename(struct weights *w, const struct dl_version *origins,
	const struct dl_version *versions);
/* What is to be done with an update of p from base to version. */
enum update_use {
	UPDATE_ADD,
	UPDATE_KNOWN, /* the version has come: nothing */
	UPDATE_ASKED, /* wait for the values, which have been asked for */
	UPDATE_ASK    /* ask for them; said once, until they come */
};
enum update_use weights_judge_update(struct weights *w, uint32_t p,
	struct dl_version base, struct dl_version version);
/* Keeps the values that an update leads to, which is to be added. */
void weights_add_update(struct weights *w, uint32_t p,
	struct dl_version version, const struct dl_coded *update);
/* The connection is lost, and with it what was asked for. */
void weights_forget_asked(struct weights *w);

/* The anchors are the values of a model that has all tensors of the layout. */
int weights_read_model(struct weights *w, const char *path, struct dl_err *e);
/* The globals that the core took before it had a trainer become anchors, when
 * it says DL_LA_LOAD. */
void weights_adopt(struct weights *w, const struct dl_learn *core);
/* Writes the model of the anchors. */
int weights_write_model(struct weights *w, const char *path, struct dl_err *e);
/* Writes the anchor of p as a record, to the path of weights_prepare. */
int weights_write_anchor(
	struct weights *w, uint32_t p, const char *path, struct dl_err *e);
/* Is it that version which waits? Not when a newer one has come since. */
int weights_has(const struct weights *w, uint32_t p, struct dl_version version);
/* Before that is due: writes what the trainer is likely to have to apply of p,
 * if it waits and is not written. */
int weights_can_prepare(const struct weights *w, uint32_t p);
int weights_prepare(
	struct weights *w, uint32_t p, const char *path, struct dl_err *e);
/* Writes what the trainer is to apply for that DL_LA_APPLY, which waits, and
 * moves the anchor. The path is that of weights_prepare. */
int weights_write_apply(struct weights *w, const struct dl_learn_action *a,
	const char *path, struct dl_err *e);

/* A push for that DL_LA_COPY, without its delta. */
struct push *weights_push(struct weights *w, const struct dl_learn_action *a);
struct push *weights_find(struct weights *w, uint32_t p, uint64_t seq);
/* Has one of p no delta yet? */
int weights_unread(const struct weights *w, uint32_t p);
/* delta = values - anchor, from the file the trainer wrote; the anchor moves
 * by what is sent as it is decoded, so that what the codec loses is part of the
 * next delta. 65 when the file does not hold the fragment, or values that are
 * not finite or too far away for the codec: then the anchor stays. */
int weights_read_push(struct weights *w, struct push *push, const char *path,
	struct dl_err *e);
/* Frees it if it is settled and nobody reads it. */
void weights_drop(struct weights *w, struct push *push);

#endif
