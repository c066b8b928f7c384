/*
 * Any record as a message: what is taken packs to bytes that unpack and pack
 * to themselves.
 */
#include <stdlib.h>

#include "fuzz.h"
#include "link/message.h"
#include "same.h"

static const struct dl_limits limits = DL_LIMITS_CONTROL;

/* The metadata of a push or global, an empty part or
 * figures, else the whole record. */
static void pack(const struct dl_message *m, struct dl_buf *out)
{
	struct dl_writer w = DL_WRITER_INIT;

	if (!dl_message_has_data(m->kind)) {
		dl_message_pack(m, out);
		return;
	}
	if (m->kind == DL_MSG_PART || m->kind == DL_MSG_FIGURES) {
		dl_message_pack_part(m, 0, out);
		return;
	}
	dl_message_meta(m, &w);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
}

/* Unpacks n bytes and packs them again to out; 0, or the refusal. */
static int cross(const void *bytes, size_t n, struct dl_buf *out)
{
	struct dl_err e = {0};
	struct dl_message m;
	struct dl_record r;
	int code = dl_record_parse(&r, bytes, n, limits, &e);

	if (code)
		return code;
	code = dl_message_unpack(&m, &r.header, r.data, &e);
	if (code && (code != DL_PROTOCOL || !e.text[0]))
		abort();
	if (!code) {
		pack(&m, out);
		dl_message_release(&m);
	}
	dl_record_release(&r);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;

	if (!cross(data, n, &once) && cross(once.data, once.len, &twice))
		abort();
	check_same(&once, &twice);
	return 0;
}
