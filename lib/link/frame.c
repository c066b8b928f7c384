#include "link/frame.h"

#include "base/mem.h"

void dl_frame_head(
	unsigned char out[DL_FRAME_HEAD], enum dl_channel channel, size_t n)
{
	dl_put_le16(out, (uint16_t)(n + 1));
	out[2] = (unsigned char)channel;
}

int dl_frame_parse(struct dl_frame *f, const void *p, size_t n, size_t *used,
	struct dl_err *e)
{
	const unsigned char *b = p;
	size_t length;

	*used = 0;
	if (n < 2)
		return 0;
	length = dl_le16(b);
	if (length == 0)
		return dl_fail(e, DL_PROTOCOL, "frame without a channel");
	if (length > DL_FRAME_PAYLOAD + 1)
		return dl_fail(e, DL_PROTOCOL,
			"frame of %zu bytes, at most %d are allowed", length,
			DL_FRAME_PAYLOAD + 1);
	if (n < DL_FRAME_HEAD)
		return 0;
	if (b[2] >= DL_CHANNELS)
		return dl_fail(
			e, DL_PROTOCOL, "frame on unknown channel %d", b[2]);
	f->channel = b[2];
	f->payload = b + DL_FRAME_HEAD;
	f->n = length - 1;
	if (f->n == 0 && f->channel != DL_CHANNEL_CONTROL)
		return dl_fail(
			e, DL_PROTOCOL, "empty frame on channel %d", b[2]);
	if (n - DL_FRAME_HEAD >= f->n)
		*used = DL_FRAME_HEAD + f->n;
	return 0;
}
