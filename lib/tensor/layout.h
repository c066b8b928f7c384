/*
 * Layouts: which tensor belongs to which fragment and how it is merged
 * (dl-layout(5)). The hash of the tensor lines names the layout.
 *
 * A fragment in memory is one packed f32 array: its tensors in byte order of
 * names, without gaps. That is also the order of data in a canonical record of
 * f32 tensors, so a record's data and the packed array are the same bytes.
 */
#ifndef DL_TENSOR_LAYOUT_H
#define DL_TENSOR_LAYOUT_H

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rule.h"
#include "tensor/choices.h"
#include "tensor/model.h"
#include "tensor/record.h"

struct dl_layout_tensor {
	struct dl_string name;
	enum dl_dtype dtype; /* in the model; math is done in f32 */
	unsigned rank;
	const uint64_t *shape;
	uint64_t elements;
	uint32_t fragment;
	enum dl_rule rule;
	struct dl_string alias; /* of rule DL_ALIAS: the tensor it is tied to */
	uint64_t offset;	/* elements into its fragment's packed array;
				 * of an alias: where its target lies */
};

struct dl_layout_fragment {
	size_t first, tensors; /* a range of layout->tensor */
	uint64_t elements;     /* of the packed array; aliases take no room */
};

struct dl_layout {
	struct dl_layout_tensor *tensor; /* by fragment, then by name */
	size_t tensors;
	struct dl_layout_fragment *fragment;
	uint32_t fragments; /* P */
	char strategy[16];
	char hash[DL_HASH_HEX];
	struct dl_buf notes; /* further # lines, whole */
	/* private */
	struct dl_buf strings;
	uint64_t *shapes;
	struct dl_layout_tensor **by_name;
};

enum dl_strategy { DL_BALANCED, DL_TENSOR, DL_LAYER, DL_STRIDED };
int dl_strategy_parse(const char *s, enum dl_strategy *out); /* -1: unknown */

struct dl_plan_options {
	enum dl_strategy strategy;
	uint32_t fragments; /* wanted P; fewer when there are fewer tensors */
	struct dl_plan_choice *choice; /* the last that matches a name holds */
	size_t choices;
};

/*
 * Plans model m. Rules by default: last for integers, mean for embeddings and
 * the output head, stat for running statistics, rda else (dl-layout(5) lists
 * the names). An alias goes where its target is. Tensors whose dtype we do no
 * math on stay local, with a note. Deterministic: same names, dtypes, shapes
 * and options, same bytes. 65 when nothing can be planned.
 */
int dl_layout_plan(struct dl_layout *l, const struct dl_model *m,
	const struct dl_plan_options *o, struct dl_err *e);

/*
 * Text form: read (65 with the line number; "-" is standard input) and write
 * (dl-layout(5)). After a failure l is empty.
 */
int dl_layout_parse(
	struct dl_layout *l, const char *text, size_t n, struct dl_err *e);
int dl_layout_read(struct dl_layout *l, const char *path, struct dl_err *e);
void dl_layout_write(const struct dl_layout *l, struct dl_buf *out);
void dl_layout_put_tensor(const struct dl_layout_tensor *t,
	struct dl_buf *out); /* one line of it */
void dl_layout_release(struct dl_layout *l);

/* The tensor of that name, or NULL when it is local. */
const struct dl_layout_tensor *dl_layout_find(
	const struct dl_layout *l, const char *name, size_t n);

int dl_layout_same_shape(const struct dl_layout_tensor *t,
	const struct dl_tensor *other);

/* 0, or 65 naming the first tensor of l that m lacks or has otherwise. */
int dl_layout_match(
	const struct dl_layout *l, const struct dl_model *m, struct dl_err *e);

/*
 * Adds the tensors of fragment p (aliases aside) to w, as f32; their data is
 * then the packed array.
 */
void dl_layout_record(
	const struct dl_layout *l, uint32_t p, struct dl_writer *w);

/* 0, or 65 naming what differs: h holds exactly fragment p's tensors (aliases
 * aside), as f32 in packed order. */
int dl_layout_check_record(const struct dl_layout *l, uint32_t p,
	const struct dl_header *h, struct dl_err *e);

#endif
