#include "link/frame.h"

#include "base/mem.h"

void dl_frame_head(
	unsigned char out[DL_FRAME_HEAD], enum dl_channel channel, size_t n)
{
	dl_put_le16(out, (uint16_t)(n + 1));
	out[2] = (unsigned char)channel;
}

int dl_frame_body(
	struct dl_frame *f, const void *body, size_t n, struct dl_err *e)
{
	const unsigned char *b = body;

	if (b[0] >= DL_CHANNELS)
		return dl_fail(
			e, DL_PROTOCOL, "frame on unknown channel %d", b[0]);
	if (n == 1 && b[0] != DL_CHANNEL_CONTROL)
		return dl_fail(
			e, DL_PROTOCOL, "empty frame on channel %d", b[0]);
	f->channel = b[0];
	f->payload = b + 1;
	f->n = n - 1;
	return 0;
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
	if (dl_frame_body(f, b + 2, length, e))
		return DL_PROTOCOL;
	if (n - 2 >= length)
		*used = 2 + length;
	return 0;
}
