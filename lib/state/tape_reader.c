/* Reading a tape. */
#include "state/tape.h"

#include <string.h>

enum { BLOCK = 1 << 16, LINE_LIMIT = 1 << 28 };

void dl_tape_reader_init(struct dl_tape_reader *r, int fd, const char *place)
{
	*r = (struct dl_tape_reader){.place = place};
	dl_input_init(&r->in, fd);
}

void dl_tape_reader_release(struct dl_tape_reader *r)
{
	dl_input_release(&r->in);
	dl_buf_free(&r->buf);
}

void dl_tape_reader_turn(struct dl_tape_reader *r, int fd)
{
	dl_input_release(&r->in);
	dl_input_init(&r->in, fd);
}

/* Reads on until the buffer holds a whole line: its length with the newline,
 * 0 at the end, -1 on error. */
static ssize_t fill_line(struct dl_tape_reader *r, struct dl_err *e)
{
	size_t seen = r->at;

	for (;;) {
		unsigned char *nl = r->buf.len > seen
					    ? memchr(r->buf.data + seen, '\n',
						      r->buf.len - seen)
					    : NULL;
		ssize_t n;

		if (nl)
			return nl + 1 - (r->buf.data + r->at);
		dl_buf_drop(&r->buf, r->at);
		r->at = 0;
		seen = r->buf.len;
		if (seen > LINE_LIMIT) {
			dl_fail(e, DL_DATA, "longer than a line may be");
			return -1;
		}
		dl_buf_reserve(&r->buf, BLOCK);
		n = dl_input_read(&r->in, r->buf.data + seen, BLOCK, e);
		if (n < 0)
			return -1;
		if (!n)
			return 0;
		r->buf.len += (size_t)n;
	}
}

/* What only the lines before can tell of this one. */
static int check_order(struct dl_tape_reader *r, const struct dl_tape_line *l,
	struct dl_err *e)
{
	if (l->kind == DL_TAPE_START) {
		r->fragments = l->start.config.schedule.fragments;
		r->now = l->now;
		return 0;
	}
	if (!r->fragments)
		return dl_fail(e, DL_DATA, "an event before any start");
	if (l->now < r->now)
		return dl_fail(e, DL_DATA, "time runs backwards");
	if (l->event.fragment >= r->fragments)
		return dl_fail(e, DL_DATA, "fragment %u of %u",
			l->event.fragment, r->fragments);
	if (l->event.kind == DL_EV_JOIN && l->versions != r->fragments)
		return dl_fail(e, DL_DATA, "%zu versions of %u fragments",
			l->versions, r->fragments);
	r->now = l->now;
	return 0;
}

int dl_tape_next(
	struct dl_tape_reader *r, struct dl_tape_line *l, struct dl_err *e)
{
	ssize_t n = fill_line(r, e);
	int rc;

	r->torn = !n && r->buf.len > r->at;
	if (!n)
		return DL_NO;
	r->line++;
	if (n > 0) {
		dl_tape_line_release(l);
		rc = dl_tape_parse_line(
			l, (const char *)r->buf.data + r->at, (size_t)n, e);
		r->at += (size_t)n;
		if (!rc)
			rc = check_order(r, l, e);
		if (!rc)
			return 0;
	}
	return dl_at(e, "%s: line %llu", r->place, (unsigned long long)r->line);
}
