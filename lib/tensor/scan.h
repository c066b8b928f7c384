/*
 * The walk over the JSON of a record's header: every check that concerns one
 * entry alone (dl_header_parse makes those between entries).
 *
 * It is made twice, first to count, then to keep what the second kind of check
 * needs. That is less than the JSON takes (an entry has 50 bytes at least, of
 * which 45 and its name are kept; a pair has 6, of which 6 are), so a header
 * that is refused never costs more than it weighs.
 */
#ifndef DL_TENSOR_SCAN_H
#define DL_TENSOR_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "tensor/dtype.h"

struct dl_scan_item { /* a tensor */
	uint64_t begin, end;
	uint32_t name, name_n; /* in text */
	uint32_t shape;	       /* the JSON from here on has its shape next */
	uint32_t dtype;
};

struct dl_scan {
	struct dl_err *err; /* not NULL */
	/* The caller's, to be filled; all NULL to count only. */
	struct dl_scan_item *item;
	uint32_t *key; /* where in the JSON those of __metadata__ begin */
	char *text;    /* names, with a NUL after each */
	size_t items, pairs, dims, text_n;
	size_t pair_text; /* bytes of keys and values, and a NUL after each */
	/* private */
	struct dl_json json;
	size_t entry; /* where the key of the current entry begins */
};

/* One walk over the n < 2^32 bytes of json; 0 or 65. */
int dl_scan_header(struct dl_scan *s, const void *json, size_t n);

/* The shape of an item of json, which was walked before; its rank. */
unsigned dl_scan_shape(
	const void *json, const struct dl_scan_item *item, uint64_t *out);

#endif
