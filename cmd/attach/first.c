#include "cmd/attach/first.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "link/frame.h"

static const int64_t hello_time = 10 * DL_SECOND;

/* As a syncer has it for strangers; frames may be small and many. */
static const struct dl_limits limits = DL_LIMITS_CONTROL;
enum { PIECE = 64 * 1024, BYTES_MAX = 4 << 20 };

struct first {
	const struct attach_rule *rule;
	struct dl_reader reader;
	struct dl_buf data; /* of the message */
	size_t at;	    /* bytes of whole frames taken */
	int whole;
};

static int judge(
	const struct first *f, const struct dl_message *m, struct dl_err *e)
{
	const char *name = f->rule->name;

	if (m->kind != DL_MSG_HELLO)
		return dl_fail(e, DL_PROTOCOL, "%s comes before hello",
			dl_message_kind_name(m->kind));
	if (!name)
		return 0;
	if (m->role != DL_ROLE_LEARNER && m->role != DL_ROLE_JOINER)
		return f->rule->allowed[m->role]
			       ? 0
			       : dl_fail(e, DL_NOPERM,
					 "this way in is for learner %s only",
					 name);
	return strcmp(m->name, name) == 0
		       ? 0
		       : dl_fail(e, DL_NOPERM,
				 "this way in is for learner %s, not for %s",
				 name, m->name);
}

static int take_message(struct first *f, struct dl_err *e)
{
	struct dl_message m;
	int code = dl_message_unpack(&m, &f->reader.header, f->data.data, e);

	if (code)
		return code;
	code = judge(f, &m, e);
	dl_message_release(&m);
	f->whole = 1;
	return code;
}

static void begin_message(struct first *f)
{
	struct dl_reader *r = &f->reader;

	dl_buf_reserve(&f->data, (size_t)r->header.data_size);
	for (size_t i = 0; i < r->header.tensors; i++)
		r->dest[i] = f->data.data + r->header.tensor[i].offset;
}

static int take_bytes(
	struct first *f, const unsigned char *p, size_t n, struct dl_err *e)
{
	enum dl_reader_event event;
	size_t taken;

	for (;;) {
		event = dl_reader_feed(&f->reader, p, n, &taken, e);
		p += taken;
		n -= taken;
		switch (event) {
		case DL_READER_MORE:
			return 0;
		case DL_READER_BAD:
			return e->code = DL_PROTOCOL;
		case DL_READER_HEADER:
			begin_message(f);
			break;
		case DL_READER_RECORD:
			return take_message(f, e);
		}
	}
}

static int take_frames(
	struct first *f, const struct dl_buf *bytes, struct dl_err *e)
{
	struct dl_frame frame;
	size_t used;

	while (!f->whole) {
		if (dl_frame_parse(&frame, bytes->data + f->at,
			    bytes->len - f->at, &used, e))
			return e->code;
		if (!used)
			return bytes->len < BYTES_MAX
				       ? 0
				       : dl_fail(e, DL_PROTOCOL,
						 "too much before hello");
		if (frame.channel != DL_CHANNEL_CONTROL)
			return dl_fail(e, DL_PROTOCOL, "data before hello");
		if (take_bytes(f, frame.payload, frame.n, e))
			return e->code;
		f->at += used;
	}
	return 0;
}

static int read_more(
	int fd, int64_t deadline, struct dl_buf *bytes, struct dl_err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int64_t left = deadline - dl_now();
	ssize_t n;

	if (left <= 0)
		return dl_fail(e, DL_UNAVAILABLE, "nobody says hello");
	if (poll(&p, 1, (int)(left / 1000000 + 1)) <= 0)
		return 0;
	dl_buf_reserve(bytes, PIECE);
	n = read(fd, bytes->data + bytes->len, PIECE);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return dl_fail(e, DL_UNAVAILABLE, "closed before hello");
	bytes->len += (size_t)n;
	return 0;
}

int attach_first(int fd, const struct attach_rule *rule, struct dl_buf *bytes,
	struct dl_err *e)
{
	struct first f = {.rule = rule};
	int64_t deadline = dl_now() + hello_time;
	int code = 0;

	dl_reader_init(&f.reader, limits);
	while (!code && !f.whole) {
		code = read_more(fd, deadline, bytes, e);
		if (!code)
			code = take_frames(&f, bytes, e);
	}
	dl_reader_release(&f.reader);
	dl_buf_free(&f.data);
	return code;
}
