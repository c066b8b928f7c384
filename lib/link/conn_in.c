#include "base/mem.h"
#include "link/conn_io.h"

/* The header of a control message: its data goes to one buffer. */
static void begin_control(struct dl_conn *c, struct dl_reader *r)
{
	size_t i;

	dl_buf_clear(&c->control_in);
	dl_buf_reserve(&c->control_in, (size_t)r->header.data_size);
	for (i = 0; i < r->header.tensors; i++)
		r->dest[i] = c->control_in.data + r->header.tensor[i].offset;
}

static int whole_control(
	struct dl_conn *c, struct dl_reader *r, struct dl_err *e)
{
	const struct dl_conn_handlers *on = c->config.handlers;
	struct dl_message m;
	int code;

	code = dl_message_unpack(&m, &r->header, c->control_in.data, e);
	if (code)
		return code;
	if (dl_message_has_data(m.kind))
		code = dl_fail(e, DL_PROTOCOL, "%s on the control channel",
			dl_message_kind_name(m.kind));
	else
		code = on->message(c->config.ctx, c, &m, e);
	dl_message_release(&m);
	return code;
}

static int begin_data(struct dl_conn *c, struct dl_reader *r, struct dl_err *e)
{
	struct dl_message *m = &c->coming;
	size_t i;
	int code;

	code = dl_message_unpack(m, &r->header, NULL, e);
	if (code)
		return code;
	if (!dl_message_has_data(m->kind)) {
		dl_message_release(m);
		return dl_fail(e, DL_PROTOCOL, "%s on the data channel",
			dl_message_kind_name(m->kind));
	}
	c->dest = NULL;
	code = c->config.handlers->begin(
		c->config.ctx, c, m, &r->header, &c->dest, e);
	if (code || !c->dest)
		return code;
	for (i = 0; i < r->header.tensors; i++)
		r->dest[i] = (char *)c->dest + r->header.tensor[i].offset;
	return 0;
}

static int take_event(struct dl_conn *c, enum dl_channel channel,
	enum dl_reader_event event, struct dl_err *e)
{
	struct dl_reader *r = &c->reader[channel];
	void *dest;

	if (event == DL_READER_BAD)
		return e->code = DL_PROTOCOL;
	if (channel == DL_CHANNEL_CONTROL) {
		if (event == DL_READER_RECORD)
			return whole_control(c, r, e);
		begin_control(c, r);
		return 0;
	}
	if (event == DL_READER_HEADER)
		return begin_data(c, r, e);
	dest = c->dest;
	c->dest = NULL;
	return c->config.handlers->whole(
		c->config.ctx, c, &c->coming, &r->header, dest, e);
}

static void tell_came(
	struct dl_conn *c, enum dl_channel channel, enum dl_reader_event event)
{
	int inside = event == DL_READER_MORE || event == DL_READER_RECORD;

	if (c->config.came && channel == DL_CHANNEL_DATA && inside && c->dest)
		c->config.came(c->config.ctx, c->reader[channel].at);
}

/* Where what comes of the record of data goes, in one piece. */
static void *place(void *ctx, size_t *n)
{
	struct dl_conn *c = ctx;
	const struct dl_reader *r = &c->reader[DL_CHANNEL_DATA];

	if (!c->dest || c->finish || c->stripes)
		return NULL;
	*n = (size_t)(r->header.data_size - r->at);
	return *n ? (char *)c->dest + r->at : NULL;
}

static int placed(void *ctx, size_t n, struct dl_err *e)
{
	struct dl_conn *c = ctx;
	enum dl_reader_event event =
		dl_reader_placed(&c->reader[DL_CHANNEL_DATA], n);

	tell_came(c, DL_CHANNEL_DATA, event);
	return event == DL_READER_MORE
		       ? 0
		       : take_event(c, DL_CHANNEL_DATA, event, e);
}

/* The next bytes of a channel of records. A handler may ask to finish on the
 * way. */
static int take_bytes(struct dl_conn *c, enum dl_channel channel,
	const unsigned char *p, size_t n, struct dl_err *e)
{
	struct dl_reader *r = &c->reader[channel];
	enum dl_reader_event event;
	size_t taken;
	int code = 0;

	r->limits = channel == DL_CHANNEL_CONTROL ? c->config.control
						  : c->config.data;
	while (!code && !c->finish) {
		event = dl_reader_feed(r, p, n, &taken, e);
		tell_came(c, channel, event);
		if (event == DL_READER_MORE)
			break;
		p += taken;
		n -= taken;
		code = take_event(c, channel, event, e);
	}
	return code;
}

/* A piece, and what it makes complete. */
static int take_piece(
	struct dl_conn *c, const struct dl_frame *f, struct dl_err *e)
{
	struct dl_stripe_in *in = &c->stripes->in;
	const unsigned char *p;
	size_t n;
	int code;

	if (f->n < DL_FRAME_OFFSET)
		return dl_fail(e, DL_PROTOCOL, "piece without an offset");
	code = dl_stripe_put(in, dl_le64(f->payload),
		f->payload + DL_FRAME_OFFSET, f->n - DL_FRAME_OFFSET, e);
	while (!code && (n = dl_stripe_take(in, &p)))
		code = take_bytes(c, DL_CHANNEL_DATA, p, n, e);
	return code;
}

static int take_received(
	struct dl_conn *c, const struct dl_frame *f, struct dl_err *e)
{
	int code;

	if (f->n != DL_FRAME_OFFSET)
		return dl_fail(e, DL_PROTOCOL, "received without an offset");
	code = dl_stripe_received(&c->stripes->out, dl_le64(f->payload), e);
	if (!code)
		dl_stripes_settle(c);
	return code;
}

/* What the last words are followed by is passed over, but for what tells that
 * they have come. */
static int take_frame(void *ctx, const struct dl_frame *f, struct dl_err *e)
{
	struct dl_conn *c = ctx;
	int striped = f->channel > DL_CHANNEL_DATA;

	if (f->channel != DL_CHANNEL_CONTROL && striped != !!c->stripes)
		return dl_fail(e, DL_PROTOCOL,
			striped ? "striped data, which was not agreed on"
				: "data that is not striped, as was agreed");
	if (f->channel == DL_CHANNEL_RECEIVED)
		return take_received(c, f, e);
	if (c->finish)
		return 0;
	return striped ? take_piece(c, f, e)
		       : take_bytes(c, f->channel, f->payload, f->n, e);
}

/* An extra stream brings pieces and heartbeats. */
static int take_extra(void *ctx, const struct dl_frame *f, struct dl_err *e)
{
	struct dl_conn *c = ctx;

	if (f->channel == DL_CHANNEL_CONTROL && f->n == 0)
		return 0;
	if (f->channel != DL_CHANNEL_PIECES)
		return dl_fail(e, DL_PROTOCOL, "more than pieces");
	c->stripes->broken = take_frame(c, f, e);
	return c->stripes->broken;
}

/* Is a record half here? */
static int is_inside(struct dl_conn *c)
{
	return dl_reader_end(&c->reader[DL_CHANNEL_CONTROL], NULL) ||
	       dl_reader_end(&c->reader[DL_CHANNEL_DATA], NULL);
}

static const struct dl_stream_taker main_taker = {take_frame, place, placed};
static const struct dl_stream_taker extra_taker = {take_extra, NULL, NULL};

int dl_conn_read_extra(
	struct dl_conn *c, struct dl_stream *s, int64_t now, struct dl_err *e)
{
	s->rate = c->config.reads;
	return dl_stream_read(s, &extra_taker, c, now, e);
}

int dl_conn_read(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	int code;

	c->main.rate = c->config.reads;
	code = dl_stream_read(&c->main, &main_taker, c, now, e);
	if (c->main.closed && c->finish)
		return dl_fail(e, DL_UNAVAILABLE, "finished");
	if (c->main.closed && is_inside(c))
		return dl_fail(e, DL_UNAVAILABLE, "closed inside a record");
	return code;
}
