/*
 * Any bytes as frames: what a prefix decides, more bytes do not change, and a
 * frame that is taken is written back to the same bytes.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "link/frame.h"

/* The verdict on each prefix of the n bytes at data; the frame's size, 0 when
 * there is none. */
static size_t check_frame(const uint8_t *data, size_t n)
{
	unsigned char head[DL_FRAME_HEAD];
	struct dl_frame f, part;
	struct dl_err e = {0};
	size_t used, early, k;
	int code = dl_frame_parse(&f, data, n, &used, &e);

	if (code && (code != DL_PROTOCOL || !e.text[0] || used))
		abort();
	for (k = 0; k < n && k < 16; k++)
		if (dl_frame_parse(&part, data, k, &early, NULL)
				? !code
				: early && early != used)
			abort();
	if (code || !used)
		return 0;
	if (used > n || used != f.n + DL_FRAME_HEAD ||
		f.payload != data + DL_FRAME_HEAD)
		abort();
	dl_frame_head(head, f.channel, f.n);
	if (memcmp(head, data, sizeof(head)) != 0)
		abort();
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t used;

	while ((used = check_frame(data, n))) {
		data += used;
		n -= used;
	}
	return 0;
}
