/*
 * Reading a file or pipe from beginning to end; what is compressed by zstd is
 * recognised by its magic and decompressed on the way: any number of frames,
 * skippable ones among them, and nothing else after them.
 */
#ifndef DL_BASE_INPUT_H
#define DL_BASE_INPUT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"

struct dl_input {
	int fd; /* not owned */
	/* private */
	struct dl_buf raw; /* read but not given out: from at on */
	size_t at;
	struct ZSTD_DCtx_s *zstd; /* NULL when the input is plain */
	int known;		  /* whether the magic was looked at */
	int inside;		  /* a zstd frame has begun and not ended */
};

enum { DL_ZSTD_MAGIC = 4 }; /* bytes */

int dl_input_is_zstd(const void *p, size_t n);

void dl_input_init(struct dl_input *in, int fd);
void dl_input_release(struct dl_input *in);

/*
 * Up to n > 0 bytes into buf, as soon as there are some; 0 at the end. -1
 * with e set: 74, or 65 when compressed data are damaged or cut.
 */
ssize_t dl_input_read(struct dl_input *in, void *buf, size_t n,
	struct dl_err *e);

#endif
