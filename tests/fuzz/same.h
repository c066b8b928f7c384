/*
 * What was written, and written again from what that was taken for, is the
 * same.
 */
#ifndef TESTS_FUZZ_SAME_H
#define TESTS_FUZZ_SAME_H

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Frees both. */
static inline void check_same(struct dl_buf *once, struct dl_buf *twice)
{
	if (once->len != twice->len ||
		memcmp(dl_buf_cstr(once), dl_buf_cstr(twice), once->len) != 0)
		abort();
	dl_buf_free(once);
	dl_buf_free(twice);
}

#endif
