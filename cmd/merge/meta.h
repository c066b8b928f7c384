/*
 * What a record says of itself, beyond numbers.
 */
#ifndef CMD_MERGE_META_H
#define CMD_MERGE_META_H

#include "sync/clock.h"
#include "tensor/record.h"

/* dl.fragment, when it is no number. */
#define META_LOCAL UINT32_MAX
#define META_NO_FRAGMENT (UINT32_MAX - 1)

/* 65 when dl.fragment is neither absent, a number nor "local". */
int meta_fragment(const struct dl_header *h, uint32_t *p, struct dl_err *e);

/* A version, or 0.0 when the key is absent; 65 when it is none. */
int meta_version(const struct dl_header *h, const char *key,
	struct dl_version *v, struct dl_err *e);
void meta_put_version(
	struct dl_writer *w, const char *key, struct dl_version v);

/* A string without NUL, or "" when the key is absent; 65 when it holds one. */
int meta_text(const struct dl_header *h, const char *key, const char **s,
	struct dl_err *e);

#endif
