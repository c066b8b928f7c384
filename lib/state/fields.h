/*
 * Structs as JSON objects, both ways from one table of their fields.
 *
 * Keys come in the table's order, all of them and no others, so one content
 * has one spelling, and repeats, gaps and unknown keys are refused by the same
 * comparison. HEAD and tapes are written this way.
 */
#ifndef DL_STATE_FIELDS_H
#define DL_STATE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/json.h"
#include "sync/clock.h"

enum dl_field_type {
	DL_FIELD_U32,
	DL_FIELD_U64,
	DL_FIELD_I64,	  /* never negative */
	DL_FIELD_NS,	  /* the same, and small enough to add another */
	DL_FIELD_REAL,	  /* a double; "nan", "inf" and "-inf" are strings */
	DL_FIELD_VERSION, /* struct dl_version, as "E.N" */
	DL_FIELD_WORD,	  /* an enum from 0, as one of its words */
};

struct dl_field {
	const char *key;
	enum dl_field_type type;
	size_t at;		  /* offset in the struct */
	const char *const *words; /* of DL_FIELD_WORD, NULL at the end */
};

/* ,"KEY": or "KEY": when nothing but { stands before it. */
void dl_put_key(struct dl_buf *out, const char *key);
void dl_put_u64(struct dl_buf *out, uint64_t v);
void dl_put_real(struct dl_buf *out, double v); /* shortest exact form */
void dl_put_version(struct dl_buf *out, struct dl_version v);
void dl_put_string(struct dl_buf *out, const char *s);

/* Fields i of n whose bit is in mask, from the struct at base. */
void dl_put_fields(struct dl_buf *out, const struct dl_field *f, size_t n,
	uint64_t mask, const void *base);

/* The string just taken, as a version; 65 when it is none. */
int dl_this_version(struct dl_json *j, struct dl_version *v);
/* 65, "JSON byte N: fact" of the token just taken. */
int dl_refuse(struct dl_json *j, const char *fact);

/* Each takes what comes next: 0, or 65 with what was expected where in the
 * struct dl_err that dl_json_init was given. */
int dl_take(struct dl_json *j, enum dl_json_token t);
int dl_take_key(struct dl_json *j, const char *key);
int dl_take_u64(struct dl_json *j, uint64_t *v);
int dl_take_real(struct dl_json *j, double *v);
int dl_take_version(struct dl_json *j, struct dl_version *v);
/* A string of at most size - 1 bytes, none of them NUL. */
int dl_take_string(struct dl_json *j, char *out, size_t size);
/* A good name (dl_name_ok); size is DL_NAME_MAX + 1. */
int dl_take_name(struct dl_json *j, char *out);
/* So many lower-case hexadecimal digits; size is one more. */
int dl_take_hex(struct dl_json *j, char *out, size_t digits);
/* The 64 of a hash; size is DL_HASH_HEX. */
int dl_take_hash(struct dl_json *j, char *out);
/* The same, or null: "". */
int dl_take_hash_or_null(struct dl_json *j, char *out);
/* Exactly the string s. */
int dl_take_exactly(struct dl_json *j, const char *s);
int dl_take_fields(struct dl_json *j, const struct dl_field *f, size_t n,
	uint64_t mask, void *base);

/* In an array: 1 when an item that begins with token t follows, 0 when the
 * array has ended, -1 when neither (65). */
int dl_take_item(struct dl_json *j, enum dl_json_token t);

#endif
