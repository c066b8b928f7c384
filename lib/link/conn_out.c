#include <stdlib.h>

#include "link/conn_io.h"

enum {
	COMPACT = 256 * 1024, /* sent control bytes worth moving the rest */
};

size_t dl_conn_item_size(const struct dl_conn_item *item)
{
	return item->head.len + item->n;
}

static size_t control_waiting(
	const struct dl_conn *c, const struct dl_conn_out *o)
{
	return c->control.len - o->control_at;
}

void dl_plan_begin(struct dl_conn_plan *p, const struct dl_conn *c, int64_t now)
{
	dl_batch_clear(&p->batch);
	p->out = c->out;
	p->rate = c->config.rate ? *c->config.rate : (struct dl_rate){0};
	p->now = now;
}

size_t dl_plan_control_left(
	const struct dl_conn_plan *p, const struct dl_conn *c)
{
	return control_waiting(c, &p->out);
}

int dl_plan_allows(const struct dl_conn_plan *p)
{
	return p->now >= dl_rate_next(&p->rate);
}

void dl_plan_control(struct dl_conn_plan *p, const struct dl_conn *c, size_t n)
{
	if (n > DL_FRAME_PAYLOAD)
		n = DL_FRAME_PAYLOAD;
	dl_batch_frame(&p->batch, DL_CHANNEL_CONTROL, n);
	if (n)
		dl_batch_add(&p->batch, c->control.data + p->out.control_at, n);
	p->out.control_at += n;
	p->out.beat = 0;
	p->frame[p->batch.frames - 1].after = p->out;
}

void dl_plan_data(struct dl_conn_plan *p, const struct dl_conn_item *item,
	size_t at, size_t n)
{
	size_t head = 0;

	if (at < item->head.len) {
		head = item->head.len - at < n ? item->head.len - at : n;
		dl_batch_add(&p->batch, item->head.data + at, head);
	}
	if (n > head)
		dl_batch_add(&p->batch, item->data + at + head - item->head.len,
			n - head);
	dl_rate_take(&p->rate, n, p->now);
}

/* Of the item being sent: its next n bytes, and on to the next at its end. */
static void plan_item(struct dl_conn_plan *p, size_t n)
{
	struct dl_conn_out *o = &p->out;

	if (n > DL_FRAME_PAYLOAD)
		n = DL_FRAME_PAYLOAD;
	dl_batch_frame(&p->batch, DL_CHANNEL_DATA, n);
	dl_plan_data(p, o->item, o->item_at, n);
	o->item_at += n;
	if (o->item_at == dl_conn_item_size(o->item)) {
		o->item = o->item->next;
		o->item_at = 0;
	}
	p->frame[p->batch.frames - 1].after = *o;
}

/* Control first; 0 when nothing waits. */
static int plan_next(struct dl_conn_plan *p, const struct dl_conn *c)
{
	const struct dl_conn_out *o = &p->out;
	size_t n = control_waiting(c, o);

	if (n || o->beat)
		dl_plan_control(p, c, n);
	else if (o->item && dl_plan_allows(p))
		plan_item(p, dl_conn_item_size(o->item) - o->item_at);
	else
		return 0;
	return 1;
}

static void plan(struct dl_conn_plan *p, const struct dl_conn *c, int64_t now)
{
	dl_plan_begin(p, c, now);
	if (!dl_stream_ready(&c->main) || dl_stream_waits(&c->main))
		return;
	if (c->main.begun.written) {
		if (c->main.begun.channel == DL_CHANNEL_DATA)
			plan_item(p, c->main.begun.n);
		else
			dl_plan_control(p, c, c->main.begun.n);
	}
	while (!dl_batch_full(&p->batch) && plan_next(p, c))
		continue;
}

void dl_plan_spend(
	const struct dl_conn_plan *p, struct dl_conn *c, size_t frames)
{
	const struct dl_batch *b = &p->batch;
	size_t i;

	for (i = 0; c->config.rate && i < frames; i++)
		if (b->frame[i].channel == DL_CHANNEL_DATA ||
			b->frame[i].channel == DL_CHANNEL_PIECES)
			dl_rate_take(c->config.rate, b->frame[i].n, p->now);
	c->held = c->config.rate && dl_rate_next(c->config.rate) > p->now
			  ? dl_rate_next(c->config.rate)
			  : 0;
}

void dl_conn_item_free(struct dl_conn_item *item, int sent)
{
	if (item->release)
		item->release(item->ctx, sent);
	dl_buf_free(&item->head);
	free(item);
}

void dl_conn_advance(struct dl_conn *c, const struct dl_conn_out *to)
{
	struct dl_conn_item *item = c->out.item, *next;

	c->out = *to;
	for (; item != to->item; item = next) {
		next = item->next;
		dl_conn_item_free(item, 1);
	}
	if (c->out.control_at == c->control.len) {
		dl_buf_clear(&c->control);
		c->out.control_at = 0;
	} else if (c->out.control_at > COMPACT) {
		dl_buf_drop(&c->control, c->out.control_at);
		c->out.control_at = 0;
	}
}

int dl_conn_has_output(const struct dl_conn *c)
{
	const struct dl_conn_out *o = &c->out;

	if (c->stripes)
		return dl_stripes_has_output(c, 0);
	if (dl_stream_waits(&c->main))
		return 1;
	return dl_stream_ready(&c->main) &&
	       (c->main.begun.written || o->beat || control_waiting(c, o) ||
		       (o->item && !c->held));
}

int dl_conn_has_queue(const struct dl_conn *c)
{
	if (!dl_stream_ready(&c->main) || dl_stream_waits(&c->main))
		return dl_stream_waits(&c->main);
	return c->main.begun.written || c->out.item ||
	       control_waiting(c, &c->out);
}

int dl_conn_write(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	struct dl_conn_plan p;
	size_t frames;
	int calls, more = 1, code;

	if (c->stripes)
		return dl_stripes_write(c, 0, now, e);
	for (calls = 0; more && calls < DL_CONN_CALLS; calls++) {
		plan(&p, c, now);
		if (!p.batch.frames && !dl_stream_waits(&c->main)) {
			dl_plan_spend(&p, c, 0);
			break;
		}
		code = dl_stream_write(
			&c->main, &p.batch, &frames, &more, now, e);
		if (code)
			return code;
		if (frames)
			dl_conn_advance(c, &p.frame[frames - 1].after);
		dl_plan_spend(&p, c, frames);
	}
	c->full = !more;
	return 0;
}

/* Something of the first item is on its way: at least its frame is begun. */
static int begun(const struct dl_conn *c)
{
	return c->out.item_at ||
	       (c->main.begun.written &&
		       c->main.begun.channel == DL_CHANNEL_DATA);
}

/* Where the first item waits of which nothing has been sent. */
static struct dl_conn_item **first_whole(struct dl_conn *c)
{
	if (c->stripes)
		return dl_stripes_whole(c);
	return c->out.item && begun(c) ? &c->out.item->next : &c->out.item;
}

/* Where the item of that key waits whole, or else the end is. */
static struct dl_conn_item **find_item(struct dl_conn *c, uint64_t key)
{
	struct dl_conn_item **at = first_whole(c);

	while (*at && !(key && (*at)->key == key))
		at = &(*at)->next;
	return at;
}

/* Behind all others, or, smallest first, behind those that are no larger. */
static void put_item(struct dl_conn *c, struct dl_conn_item *item)
{
	struct dl_conn_item **at = first_whole(c);
	size_t n = dl_conn_item_size(item);

	while (*at && (!c->smallest_first || dl_conn_item_size(*at) <= n))
		at = &(*at)->next;
	item->next = *at;
	*at = item;
}

void dl_conn_smallest_first(struct dl_conn *c)
{
	struct dl_conn_item **whole = first_whole(c), *item = *whole, *next;

	c->smallest_first = 1;
	*whole = NULL;
	for (; item; item = next) {
		next = item->next;
		put_item(c, item);
	}
}

void dl_conn_send_data(struct dl_conn *c, uint64_t key, struct dl_buf *head,
	const void *data, size_t n, void (*release)(void *ctx, int sent),
	void *ctx)
{
	struct dl_conn_item *item = dl_alloc(sizeof(*item)), **at, *old;

	*item = (struct dl_conn_item){
		.key = key,
		.head = *head,
		.data = data,
		.n = n,
		.release = release,
		.ctx = ctx,
	};
	*head = (struct dl_buf)DL_BUF_INIT;
	if (c->finish) {
		dl_conn_item_free(item, 0);
		return;
	}
	at = find_item(c, key);
	old = *at;
	if (!old) {
		put_item(c, item);
		return;
	}
	item->next = old->next;
	*at = item;
	dl_conn_item_free(old, 0);
}

int dl_conn_waits(struct dl_conn *c, uint64_t key)
{
	return *find_item(c, key) != NULL;
}

uint64_t dl_conn_waiting(const struct dl_conn *c)
{
	uint64_t n = control_waiting(c, &c->out);
	const struct dl_conn_item *item;

	for (item = c->out.item; item; item = item->next)
		n += dl_conn_item_size(item);
	n -= c->out.item_at;
	return c->stripes ? n - (c->stripes->out.given - c->stripes->base) : n;
}

void dl_conn_drop_output(struct dl_conn *c)
{
	struct dl_conn_item *item, *next;

	for (item = c->out.item; item; item = next) {
		next = item->next;
		dl_conn_item_free(item, 0);
	}
	c->out = (struct dl_conn_out){0};
	dl_buf_free(&c->control);
}
