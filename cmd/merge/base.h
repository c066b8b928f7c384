/*
 * The base of a merge: a model, or fragments of one, and the layout that says
 * how its tensors are merged.
 */
#ifndef CMD_MERGE_BASE_H
#define CMD_MERGE_BASE_H

#include "sync/sync.h"
#include "tensor/layout.h"
#include "tensor/model.h"

struct base_fragment {
	uint32_t number;	   /* as records name it */
	int held;		   /* its tensors are there: all, or none */
	struct dl_version version; /* epoch 0: unknown */
};

struct base {
	struct dl_model model;
	struct dl_layout layout; /* the one given; or by default rules, of what
				  * is there */
	struct base_fragment *fragment; /* by the layout's number */
	int whole;			/* not cut: it stays one record */
	int local;			/* holds what is in no fragment */
	uint64_t fragments, records;	/* of the model; 0: unknown */
	char run[DL_NAME_MAX + 1];	/* "": unknown */
	char hash[DL_HASH_HEX];		/* of the layout; "": unknown */
};

/* path is as for dl_model_add; layout is a path or NULL. Close it also after a
 * failure. */
int base_open(
	struct base *b, const char *path, const char *layout, struct dl_err *e);
void base_close(struct base *b);

/* 65 when h is of another run or layout than what was seen before. */
int base_agree(struct base *b, const struct dl_header *h, struct dl_err *e);

/* The layout's number of the fragment that h is of: 65 when there is none, or
 * the base does not hold it. */
int base_find(const struct base *b, const struct dl_header *h, uint32_t *p,
	struct dl_err *e);

/* The metadata that all records of fragment p have. */
void base_describe(const struct base *b, uint32_t p, const char *kind,
	struct dl_writer *w);

/* Fragment p's values as f32, packed; NaN and infinity are 65. */
int base_read(const struct base *b, uint32_t p, float *out, struct dl_err *e);

/* The version after the present one. */
struct dl_version base_next(const struct base *b, uint32_t p);

#endif
