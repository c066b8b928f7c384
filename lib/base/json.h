/*
 * A strict pull parser for JSON (RFC 8259) and a writer's string escape.
 *
 * No tree: the caller asks for one token after another and gets strings with
 * lengths: a string without escapes where it stands in the input, so memory is
 * bounded by the longest one with escapes. Refused: invalid UTF-8, unpaired
 * surrogates, control characters in strings, numbers that are not
 * JSON's, nesting above DL_JSON_DEPTH, anything after the top value. Escapes
 * are decoded, \u0000 included, so names are compared as they mean, not as
 * they were spelled. Duplicate keys are the caller's to refuse, since only it
 * knows how many it can hold.
 */
#ifndef DL_BASE_JSON_H
#define DL_BASE_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

enum { DL_JSON_DEPTH = 16 };

enum dl_json_token {
	DL_JSON_END,    /* the top value is complete and nothing follows it */
	DL_JSON_OBJECT, /* { */
	DL_JSON_OBJECT_END,
	DL_JSON_ARRAY,  /* [ */
	DL_JSON_ARRAY_END,
	DL_JSON_KEY,    /* text, len */
	DL_JSON_STRING, /* text, len */
	DL_JSON_NUMBER, /* text, len: as spelled; see dl_json_u64 */
	DL_JSON_TRUE,
	DL_JSON_FALSE,
	DL_JSON_NULL,
	DL_JSON_BAD,    /* err is set; further calls return it again */
};

struct dl_json {
	const char *text;  /* of a key, string or number; valid until the next
			    * call; without a NUL past len */
	size_t len;
	size_t offset;     /* of the current token in the input */
	/* private */
	const unsigned char *in;
	size_t n, at;
	unsigned depth;
	unsigned char close[DL_JSON_DEPTH + 1]; /* '}' or ']', by depth */
	int want;          /* what may come next */
	struct dl_buf buf;
	struct dl_err *err;
};

/* Reads n bytes at in, which must outlive j; errors (65) go to e. */
void dl_json_init(struct dl_json *j, const void *in, size_t n,
	struct dl_err *e);
void dl_json_release(struct dl_json *j);

enum dl_json_token dl_json_next(struct dl_json *j);

/* Skips the value that begins with the token just returned; 0 or 65. */
int dl_json_skip(struct dl_json *j, enum dl_json_token t);

/* Is the current key or string s? */
static inline int dl_json_is(const struct dl_json *j, const char *s)
{
	size_t n = strlen(s);

	return j->len == n && !memcmp(j->text, s, n);
}

/* The current number as an exact integer; 65 when it is negative, fractional,
 * in exponent form, or over 64 bits. */
int dl_json_u64(struct dl_json *j, uint64_t *out);
/* The current number as a double; 65 when it overflows. */
int dl_json_double(struct dl_json *j, double *out);

/* Appends s as a JSON string with its quotes; controls become \u00NN. s is
 * valid UTF-8. */
void dl_json_quote(struct dl_buf *out, const char *s, size_t n);

#endif
