#include <poll.h>
#include <stdlib.h>

#include "link/conn_io.h"

void dl_conn_stripe(struct dl_conn *c, unsigned streams, uint64_t window)
{
	struct dl_conn_stripes *s = dl_alloc(sizeof(*s));

	s->streams = streams;
	dl_stripe_out_init(&s->out, window);
	dl_stripe_in_init(&s->in, window);
	s->lane[0].stream = &c->main;
	c->stripes = s;
}

/* The i-th stream is no more; what it had goes over others. */
static void lose(struct dl_conn *c, unsigned i)
{
	struct dl_conn_lane *l = &c->stripes->lane[i];

	c->gone_in += l->stream->bytes_in;
	c->gone_out += l->stream->bytes_out;
	if (c->loop)
		dl_loop_remove(c->loop, l->stream->fd);
	dl_stream_release(l->stream);
	free(l->stream);
	*l = (struct dl_conn_lane){0};
	dl_stripe_lost(&c->stripes->out, i);
}

void dl_stripes_free(struct dl_conn *c)
{
	struct dl_conn_stripes *s = c->stripes;
	unsigned i;

	for (i = 1; i < s->streams; i++)
		if (s->lane[i].stream)
			lose(c, i);
	dl_stripe_out_release(&s->out);
	dl_stripe_in_release(&s->in);
	free(s);
	c->stripes = NULL;
}

unsigned dl_conn_missing(const struct dl_conn *c)
{
	const struct dl_conn_stripes *s = c->stripes;
	unsigned i, n = 0;

	for (i = 1; s && !c->finish && i < s->streams; i++)
		n += !s->lane[i].stream;
	return n;
}

void dl_conn_offer(struct dl_conn *c)
{
	c->main.paused = 1;
}

int dl_conn_offered(const struct dl_conn *c)
{
	return c->main.paused && !dl_conn_has_queue(c);
}

void dl_conn_adopt(struct dl_conn *c, struct dl_conn *offered, int64_t now)
{
	struct dl_conn_lane *l = &c->stripes->lane[1];

	while (l->stream)
		l++;
	if (offered->loop)
		dl_loop_remove(offered->loop, offered->main.fd);
	l->stream = dl_alloc(sizeof(*l->stream));
	*l->stream = offered->main;
	l->stream->paused = 0;
	l->stream->heard = now;
	l->fresh = 1;
	offered->main = (struct dl_stream){.fd = -1};
	dl_conn_release(offered);
}

/* The item that the byte at offset is of, or NULL; *start is its first. */
static struct dl_conn_item *item_at(
	const struct dl_conn *c, uint64_t offset, uint64_t *start)
{
	struct dl_conn_item *item = c->out.item;

	*start = c->stripes->base;
	while (item && *start + dl_conn_item_size(item) <= offset) {
		*start += dl_conn_item_size(item);
		item = item->next;
	}
	return item;
}

/* Where the bytes end that may be given next: a piece is of one item. */
static uint64_t next_end(const struct dl_conn *c)
{
	uint64_t start;
	const struct dl_conn_item *item =
		item_at(c, c->stripes->out.given, &start);

	return item ? start + dl_conn_item_size(item) : c->stripes->out.given;
}

struct dl_conn_item **dl_stripes_whole(struct dl_conn *c)
{
	struct dl_conn_item **at = &c->out.item;
	uint64_t start = c->stripes->base;

	while (*at && start < c->stripes->out.given) {
		start += dl_conn_item_size(*at);
		at = &(*at)->next;
	}
	return at;
}

/* What a frame that is begun refers to is needed until it is written, whatever
 * the peer says. */
static uint64_t settled(const struct dl_conn_stripes *s)
{
	uint64_t to = s->out.received;
	unsigned i;

	for (i = 0; i < s->streams; i++) {
		const struct dl_conn_lane *l = &s->lane[i];

		if (l->stream && l->stream->begun.written &&
			l->stream->begun.channel == DL_CHANNEL_PIECES &&
			l->begun.offset < to)
			to = l->begun.offset;
	}
	return to;
}

void dl_stripes_settle(struct dl_conn *c)
{
	struct dl_conn_stripes *s = c->stripes;
	struct dl_conn_item *item = c->out.item;
	uint64_t to = settled(s);

	while (item && s->base + dl_conn_item_size(item) <= to) {
		s->base += dl_conn_item_size(item);
		c->out.item = item->next;
		dl_conn_item_free(item, 1);
		item = c->out.item;
	}
}

/* A frame that is an offset, and n bytes after it. */
static struct dl_conn_planned *plan_offset(struct dl_conn_plan *p,
	enum dl_channel channel, uint64_t offset, size_t n)
{
	struct dl_conn_planned *f = &p->frame[p->batch.frames];

	dl_put_le64(f->offset, offset);
	f->after = p->out;
	dl_batch_frame(&p->batch, channel, DL_FRAME_OFFSET + n);
	dl_batch_add(&p->batch, f->offset, DL_FRAME_OFFSET);
	return f;
}

static void plan_piece(struct dl_conn_plan *p, const struct dl_conn *c,
	const struct dl_piece *piece)
{
	const struct dl_conn_item *item;
	uint64_t start;

	plan_offset(p, DL_CHANNEL_PIECES, piece->offset, piece->n)->piece =
		*piece;
	item = item_at(c, piece->offset, &start);
	dl_plan_data(p, item, piece->offset - start, piece->n);
}

static int plan_new_piece(struct dl_conn_plan *p, struct dl_conn *c, unsigned i)
{
	struct dl_piece piece;

	if (!dl_plan_allows(p) ||
		!dl_stripe_give(&c->stripes->out, i, next_end(c),
			DL_FRAME_PAYLOAD - DL_FRAME_OFFSET, &piece))
		return 0;
	plan_piece(p, c, &piece);
	return 1;
}

static void plan_begun(
	struct dl_conn_plan *p, const struct dl_conn *c, unsigned i)
{
	const struct dl_conn_stripes *s = c->stripes;
	const struct dl_conn_lane *l = &s->lane[i];

	if (l->stream->begun.channel == DL_CHANNEL_PIECES)
		plan_piece(p, c, &l->begun);
	else if (l->stream->begun.channel == DL_CHANNEL_RECEIVED)
		plan_offset(p, DL_CHANNEL_RECEIVED, s->told, 0);
	else
		dl_plan_control(p, c, l->stream->begun.n);
}

/* Control, then what has been received, on main only; then pieces. */
static void plan(
	struct dl_conn_plan *p, struct dl_conn *c, unsigned i, int64_t now)
{
	const struct dl_conn_stripes *s = c->stripes;
	int more = 1;

	dl_plan_begin(p, c, now);
	if (dl_stream_waits(s->lane[i].stream))
		return;
	if (i)
		p->out.beat = s->lane[i].beat;
	if (s->lane[i].stream->begun.written)
		plan_begun(p, c, i);
	while (!i && !dl_batch_full(&p->batch) && dl_plan_control_left(p, c))
		dl_plan_control(p, c, dl_plan_control_left(p, c));
	if (!dl_batch_full(&p->batch) && p->out.beat)
		dl_plan_control(p, c, 0);
	if (!i && !dl_batch_full(&p->batch) && s->told < s->in.next)
		plan_offset(p, DL_CHANNEL_RECEIVED, s->in.next, 0);
	while (more && !dl_batch_full(&p->batch))
		more = plan_new_piece(p, c, i);
}

/* The first frames have been written on stream i, and maybe some of one more;
 * nothing of the others. */
static void account(struct dl_conn *c, unsigned i, const struct dl_conn_plan *p,
	size_t frames)
{
	struct dl_conn_stripes *s = c->stripes;
	struct dl_conn_lane *l = &s->lane[i];
	size_t k, begun = frames + (l->stream->begun.written > 0);

	for (k = p->batch.frames; k-- > begun;)
		if (p->batch.frame[k].channel == DL_CHANNEL_PIECES)
			dl_stripe_take_back(&s->out, &p->frame[k].piece);
	for (k = 0; k < begun; k++)
		if (p->batch.frame[k].channel == DL_CHANNEL_RECEIVED)
			s->told = dl_le64(p->frame[k].offset);
	if (begun > frames)
		l->begun = p->frame[frames].piece;
	if (frames && i)
		l->beat = p->frame[frames - 1].after.beat;
	else if (frames)
		dl_conn_advance(c, &p->frame[frames - 1].after);
	dl_plan_spend(p, c, frames);
	dl_stripes_settle(c);
}

int dl_stripes_has_output(const struct dl_conn *c, unsigned i)
{
	const struct dl_conn_stripes *s = c->stripes;
	const struct dl_conn_lane *l = &s->lane[i];

	if (l->stream->begun.written || dl_stream_waits(l->stream) ||
		(!c->held && dl_stripe_can_give(&s->out, next_end(c))))
		return 1;
	return i ? l->beat
		 : c->out.beat || c->out.control_at < c->control.len ||
			       s->told < s->in.next;
}

int dl_stripes_write(
	struct dl_conn *c, unsigned i, int64_t now, struct dl_err *e)
{
	struct dl_conn_lane *l = &c->stripes->lane[i];
	struct dl_conn_plan p;
	size_t frames;
	int calls, more = 1, code;

	for (calls = 0; more && calls < DL_CONN_CALLS; calls++) {
		plan(&p, c, i, now);
		if (!p.batch.frames && !dl_stream_waits(l->stream)) {
			dl_plan_spend(&p, c, 0);
			break;
		}
		code = dl_stream_write(
			l->stream, &p.batch, &frames, &more, now, e);
		account(c, i, &p, frames);
		if (code)
			return code;
	}
	l->full = !more;
	return 0;
}

/* When a heartbeat is due on stream i, and when it has been silent too long. */
static int64_t beat_at(const struct dl_conn *c, unsigned i)
{
	int64_t pause = c->config.beat_ns;

	return pause && !dl_stripes_has_output(c, i)
		       ? c->stripes->lane[i].stream->sent + pause
		       : INT64_MAX;
}

static int64_t silent_at(const struct dl_conn *c, unsigned i)
{
	int64_t limit = c->config.silence_ns;

	return limit ? c->stripes->lane[i].stream->heard + limit : INT64_MAX;
}

static int turn(struct dl_conn *c, unsigned i, short revents, int64_t now,
	struct dl_err *e)
{
	struct dl_conn_lane *l = &c->stripes->lane[i];
	int code = 0;

	if (revents & POLLOUT)
		l->full = 0;
	if (l->fresh || revents & ~POLLOUT || now >= silent_at(c, i))
		code = dl_conn_read_extra(c, l->stream, now, e);
	l->fresh = 0;
	if (!code && now >= silent_at(c, i))
		return dl_fail(e, DL_UNAVAILABLE, "silent");
	if (now >= beat_at(c, i))
		l->beat = 1;
	return code || l->full || !dl_stripes_has_output(c, i)
		       ? code
		       : dl_stripes_write(c, i, now, e);
}

int dl_stripes_turn(
	struct dl_conn *c, int fd, short revents, int64_t now, struct dl_err *e)
{
	struct dl_conn_stripes *s = c->stripes;
	unsigned i;

	for (i = 1; i < s->streams; i++) {
		const struct dl_stream *stream = s->lane[i].stream;

		if (!stream ||
			!turn(c, i, stream->fd == fd ? revents : 0, now, e))
			continue;
		if (s->broken)
			return s->broken;
		lose(c, i);
	}
	return 0;
}

int64_t dl_stripes_deadline(const struct dl_conn *c)
{
	const struct dl_conn_stripes *s = c->stripes;
	int64_t at = INT64_MAX, next;
	unsigned i;

	for (i = 1; i < s->streams; i++) {
		if (!s->lane[i].stream)
			continue;
		next = s->lane[i].fresh ? 0 : beat_at(c, i);
		if (silent_at(c, i) < next)
			next = silent_at(c, i);
		if (next < at)
			at = next;
	}
	return at;
}

void dl_stripes_watch(struct dl_conn *c, dl_loop_fn *fn, void *ctx)
{
	const struct dl_conn_stripes *s = c->stripes;
	short in = c->rests ? 0 : POLLIN;
	unsigned i;

	for (i = 1; i < s->streams; i++)
		if (s->lane[i].stream)
			dl_loop_set(c->loop, s->lane[i].stream->fd,
				dl_stripes_has_output(c, i) ? in | POLLOUT : in,
				fn, ctx);
}
