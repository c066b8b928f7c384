#include "link/batch.h"

void dl_batch_clear(struct dl_batch *b)
{
	b->frames = b->pieces = b->bytes = 0;
}

int dl_batch_full(const struct dl_batch *b)
{
	return b->frames == DL_BATCH_FRAMES || b->bytes >= DL_BATCH_BYTES;
}

void dl_batch_frame(struct dl_batch *b, enum dl_channel channel, size_t n)
{
	struct dl_batch_frame *f = &b->frame[b->frames++];

	f->channel = channel;
	f->n = n;
	f->from = b->pieces;
	dl_frame_head(f->head, channel, n);
	dl_batch_add(b, f->head, sizeof(f->head));
}

void dl_batch_add(struct dl_batch *b, const void *p, size_t n)
{
	b->piece[b->pieces++] = (struct iovec){(void *)p, n};
	b->bytes += n;
}
