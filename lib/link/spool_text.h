/*
 * The form that all texts of a spool share, from tables of their keys. Private
 * to spool*.c.
 */
#ifndef DL_LINK_SPOOL_TEXT_H
#define DL_LINK_SPOOL_TEXT_H

#include "link/spool.h"

/* How a value looks; at is where it lies in its struct. */
enum dl_spool_form {
	SPOOL_NUMBER,	/* uint64_t */
	SPOOL_POSITIVE, /* uint64_t, not 0 */
	SPOOL_FLAG,	/* int, "0" or "1" */
	SPOOL_VERSION,	/* struct dl_version, EPOCH.NUMBER */
	SPOOL_NAME,	/* a good name */
	SPOOL_HASH,	/* char [DL_HASH_HEX] */
	SPOOL_NO_HASH,	/* the same, or "-" for "" */
	SPOOL_TOKEN,	/* char [DL_SPOOL_WORD] of a-z 0-9 . :, or "-" for "" */
	SPOOL_LOSS,	/* double; "nan" when unknown; six digits are kept */
	SPOOL_WORD,	/* an enum from 0, as one of words */
};

struct dl_spool_field {
	const char *key;
	enum dl_spool_form form;
	size_t at;
	const char *const *words; /* NULL at the end */
};

struct dl_spool_fields {
	const struct dl_spool_field *field;
	size_t n;
};

/* "# dl-spool 1" and the keys of the struct at v. */
void dl_spool_put_keys(
	struct dl_buf *out, const struct dl_spool_fields *f, const void *v);
/* "#fragment" and the columns' names. */
void dl_spool_put_columns(
	struct dl_buf *out, const struct dl_spool_fields *columns);
/* Row p from the struct at v. */
void dl_spool_put_row(struct dl_buf *out, uint32_t p,
	const struct dl_spool_fields *columns, const void *v);

/* A text being taken apart, line by line. */
struct dl_spool_lines {
	const char *at, *end;
	size_t number; /* of the line taken last, from 1 */
	struct dl_err *e;
};

void dl_spool_lines_init(
	struct dl_spool_lines *t, const void *text, size_t n, struct dl_err *e);
/* 65, "line N: fact". */
int dl_spool_refuse(struct dl_spool_lines *t, const char *fact);
/* The next line, which has no newline and no NUL: 1, 0 at the end, -1 (65). */
int dl_spool_line(struct dl_spool_lines *t, const char **line, size_t *n);
/* The format's line, then lines "# key value" up to one of another kind, which
 * is left: all of f's keys. */
int dl_spool_take_keys(
	struct dl_spool_lines *t, const struct dl_spool_fields *f, void *v);
/* The columns' line and all rows to the end of the text, as an array of
 * structs of that size, for the caller to free; n of them, at least one. */
int dl_spool_take_rows(struct dl_spool_lines *t,
	const struct dl_spool_fields *columns, size_t size, void **rows,
	uint32_t *n);

/* A number of one spelling from *s on, which is moved past it; -1: none. */
int dl_spool_take_number(const char **s, uint64_t *out);
int dl_spool_take_version(const char **s, struct dl_version *out);
int dl_spool_is_hash(const char *s, size_t n);

#endif
