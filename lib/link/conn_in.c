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
	return c->config.handlers->whole(
		c->config.ctx, c, &c->coming, &r->header, c->dest, e);
}

/* The next bytes of a channel. A handler may ask to finish on the way. */
static int take_frame(void *ctx, const struct dl_frame *f, struct dl_err *e)
{
	struct dl_conn *c = ctx;
	struct dl_reader *r = &c->reader[f->channel];
	const unsigned char *p = f->payload;
	size_t n = f->n, taken;
	enum dl_reader_event event;
	int code = 0;

	r->limits = f->channel == DL_CHANNEL_CONTROL ? c->config.control
						     : c->config.data;
	while (!code && !c->finish) {
		event = dl_reader_feed(r, p, n, &taken, e);
		if (event == DL_READER_MORE)
			break;
		p += taken;
		n -= taken;
		code = take_event(c, f->channel, event, e);
	}
	return code;
}

/* Is a record half here? */
static int is_inside(struct dl_conn *c)
{
	return dl_reader_end(&c->reader[DL_CHANNEL_CONTROL], NULL) ||
	       dl_reader_end(&c->reader[DL_CHANNEL_DATA], NULL);
}

int dl_conn_read(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	int code = dl_stream_read(&c->main, take_frame, c, now, e);

	if (c->main.closed && c->finish)
		return dl_fail(e, DL_UNAVAILABLE, "finished");
	if (c->main.closed && is_inside(c))
		return dl_fail(e, DL_UNAVAILABLE, "closed inside a record");
	return code;
}
