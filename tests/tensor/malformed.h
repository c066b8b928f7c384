/*
 * Malformed records, each with the fact that its refusal must name.
 */
#ifndef TESTS_TENSOR_MALFORMED_H
#define TESTS_TENSOR_MALFORMED_H

#include <stddef.h>

#include "base/mem.h"

/* Calls f with every one of them. alone is the fact when the bytes should be
 * one record, stream when they come as any number of records. */
void malformed_each(
	void (*f)(void *ctx, const char *name, const struct dl_buf *bytes,
		const char *alone, const char *stream),
	void *ctx);

#endif
