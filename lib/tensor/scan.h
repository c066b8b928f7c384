/*
 * The walk over the JSON of a record's header: every check that concerns one
 * entry alone (dl_header_parse makes those between entries).
 *
 * It keeps what the second kind of check needs, in less than the JSON takes: an
 * entry has 50 bytes at least, of which 32 are kept here and 12 are used to
 * find names and sort, and a pair has 6, of which 4 are kept. Room is made for
 * what the rest of the JSON can hold, so it never moves, and a header that is
 * refused never costs more than it weighs.
 */
#ifndef DL_TENSOR_SCAN_H
#define DL_TENSOR_SCAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "tensor/dtype.h"

enum { DL_SCAN_EXTRA = 32 };

struct dl_scan_item { /* a tensor */
	uint64_t begin, end;
	uint32_t key;	/* where in the JSON its name begins */
	uint32_t hash;	/* of its name */
	uint32_t shape; /* the JSON from here on has its shape next */
	uint32_t dtype;
};

struct dl_scan {		       /* zero but for the first two */
	struct dl_err *err;	       /* not NULL */
	const unsigned char *hash_key; /* as libsodium's crypto_shorthash has */
	/* Filled by the walk; the caller frees item and key. */
	struct dl_scan_item *item;
	uint32_t *key; /* where in the JSON those of __metadata__ begin */
	size_t items, pairs, dims;
	size_t names;	  /* bytes of names, and a NUL after each */
	size_t pair_text; /* bytes of keys and values, and a NUL after each */
	/* private */
	struct dl_json json;
	size_t entry; /* where the key of the current entry begins */
	size_t extra[DL_SCAN_EXTRA]; /* and those of its unknown fields */
};

/* One walk over the n < 2^32 bytes of json; 0 or 65. */
int dl_scan_header(struct dl_scan *s, const void *json, size_t n);

/* The shape of an item of json, which was walked before; its rank. */
unsigned dl_scan_shape(
	const void *json, const struct dl_scan_item *item, uint64_t *out);

/* Reads the string that begins at byte at into j, which the caller releases. */
void dl_scan_string(const struct dl_scan *s, size_t at, struct dl_json *j);

/* Do the strings that begin at bytes a and b mean the same? */
int dl_scan_same_text(const struct dl_scan *s, size_t a, size_t b);

uint32_t dl_scan_hash(const unsigned char *key, const char *name, size_t n);

/* 65 with a fact about the tensor whose name begins at byte key. */
int dl_scan_refuse(struct dl_scan *s, size_t key, const char *fact);

/* The same of an item that does not begin at byte at of the data, where what
 * goes before it ends. */
int dl_scan_misplaced(
	struct dl_scan *s, const struct dl_scan_item *item, uint64_t at);

#endif
