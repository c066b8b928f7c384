#include "tensor/zstd_size.h"

#include <zstd.h>

enum { ROOM = 1 << 16 };

uint64_t dl_zstd_size_add(
	struct dl_zstd_size *z, const void *p, size_t n, int last)
{
	ZSTD_EndDirective how = last ? ZSTD_e_end : ZSTD_e_continue;
	ZSTD_inBuffer in = {p, n, 0};
	unsigned char room[ROOM];
	uint64_t bytes = 0;
	size_t left;

	if (!z->ctx)
		z->ctx = ZSTD_createCCtx();
	do {
		ZSTD_outBuffer out = {room, sizeof room, 0};

		left = ZSTD_compressStream2(z->ctx, &out, &in, how);
		bytes += out.pos;
	} while (!ZSTD_isError(left) && (in.pos < in.size || (last && left)));
	return bytes;
}

void dl_zstd_size_release(struct dl_zstd_size *z)
{
	ZSTD_freeCCtx(z->ctx);
	z->ctx = NULL;
}
