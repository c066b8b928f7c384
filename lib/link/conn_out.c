#include <stdlib.h>

#include "link/conn_io.h"

enum {
	CALLS = 4,	      /* a dl_conn_write, so that others get a turn */
	COMPACT = 256 * 1024, /* sent control bytes worth moving the rest */
};

static size_t item_size(const struct dl_conn_item *item)
{
	return item->head.len + item->n;
}

static size_t control_waiting(
	const struct dl_conn *c, const struct dl_conn_out *o)
{
	return c->control.len - o->control_at;
}

/* Of the item being sent: its next n bytes, and on to the next at its end. */
static void add_item(struct dl_batch *b, struct dl_conn_out *o, size_t n)
{
	const struct dl_conn_item *item = o->item;
	size_t head = 0;

	if (o->item_at < item->head.len) {
		head = item->head.len - o->item_at;
		if (head > n)
			head = n;
		dl_batch_add(b, item->head.data + o->item_at, head);
		o->item_at += head;
	}
	if (n > head)
		dl_batch_add(
			b, item->data + o->item_at - item->head.len, n - head);
	o->item_at += n - head;
	if (o->item_at == item_size(item)) {
		o->item = item->next;
		o->item_at = 0;
	}
}

static void add_frame(const struct dl_conn *c, struct dl_batch *b,
	struct dl_conn_out *o, enum dl_channel channel, size_t n)
{
	if (n > DL_FRAME_PAYLOAD)
		n = DL_FRAME_PAYLOAD;
	dl_batch_frame(b, channel, n);
	if (channel == DL_CHANNEL_DATA) {
		add_item(b, o, n);
		return;
	}
	if (n)
		dl_batch_add(b, c->control.data + o->control_at, n);
	o->control_at += n;
	o->beat = 0;
}

/* Control first; 0 when nothing waits. */
static int add_next(
	const struct dl_conn *c, struct dl_batch *b, struct dl_conn_out *o)
{
	size_t n = control_waiting(c, o);

	if (n || o->beat)
		add_frame(c, b, o, DL_CHANNEL_CONTROL, n);
	else if (o->item)
		add_frame(c, b, o, DL_CHANNEL_DATA,
			item_size(o->item) - o->item_at);
	else
		return 0;
	return 1;
}

/* Fills b with what goes out next; after[i] is where sending will be once its
 * frame i has been sent. */
static void plan(const struct dl_conn *c, struct dl_batch *b,
	struct dl_conn_out after[DL_BATCH_FRAMES])
{
	struct dl_conn_out o = c->out;

	dl_batch_clear(b);
	if (!dl_stream_ready(&c->main))
		return;
	if (c->main.begun.written) {
		add_frame(c, b, &o, c->main.begun.channel, c->main.begun.n);
		after[0] = o;
	}
	while (!dl_batch_full(b) && add_next(c, b, &o))
		after[b->frames - 1] = o;
}

static void free_item(struct dl_conn_item *item, int sent)
{
	if (item->release)
		item->release(item->ctx, sent);
	dl_buf_free(&item->head);
	free(item);
}

static void advance(struct dl_conn *c, const struct dl_conn_out *to)
{
	struct dl_conn_item *item = c->out.item, *next;

	c->out = *to;
	for (; item != to->item; item = next) {
		next = item->next;
		free_item(item, 1);
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

	if (dl_stream_waits(&c->main))
		return 1;
	return dl_stream_ready(&c->main) &&
	       (o->beat || o->item || control_waiting(c, o));
}

int dl_conn_write(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	struct dl_conn_out after[DL_BATCH_FRAMES];
	struct dl_batch b;
	size_t frames;
	int calls, more = 1, code;

	for (calls = 0; more && calls < CALLS && dl_conn_has_output(c);
		calls++) {
		plan(c, &b, after);
		code = dl_stream_write(&c->main, &b, &frames, &more, now, e);
		if (code)
			return code;
		if (frames)
			advance(c, &after[frames - 1]);
	}
	return 0;
}

/* Something of the first item is on its way: at least its frame is begun. */
static int begun(const struct dl_conn *c)
{
	return c->out.item_at ||
	       (c->main.begun.written &&
		       c->main.begun.channel == DL_CHANNEL_DATA);
}

/* Where the item of that key waits whole; else where a new one is put. */
static struct dl_conn_item **find_item(struct dl_conn *c, uint64_t key)
{
	struct dl_conn_item **at = &c->out.item;

	if (*at && begun(c))
		at = &(*at)->next;
	while (*at && !(key && (*at)->key == key))
		at = &(*at)->next;
	return at;
}

void dl_conn_send_data(struct dl_conn *c, uint64_t key, struct dl_buf *head,
	const void *data, size_t n, void (*release)(void *ctx, int sent),
	void *ctx)
{
	struct dl_conn_item *item = dl_alloc(sizeof(*item)), **at, *old;

	at = find_item(c, key);
	old = *at;
	*item = (struct dl_conn_item){
		.next = old ? old->next : NULL,
		.key = key,
		.head = *head,
		.data = data,
		.n = n,
		.release = release,
		.ctx = ctx,
	};
	*head = (struct dl_buf)DL_BUF_INIT;
	if (c->finish) {
		free_item(item, 0);
		return;
	}
	*at = item;
	if (old)
		free_item(old, 0);
}

int dl_conn_waits(const struct dl_conn *c, uint64_t key)
{
	const struct dl_conn_item *item = c->out.item;

	if (item && begun(c))
		item = item->next;
	while (item && item->key != key)
		item = item->next;
	return item != NULL;
}

uint64_t dl_conn_waiting(const struct dl_conn *c)
{
	uint64_t n = control_waiting(c, &c->out);
	const struct dl_conn_item *item;

	for (item = c->out.item; item; item = item->next)
		n += item_size(item);
	return n - c->out.item_at;
}

void dl_conn_drop_output(struct dl_conn *c)
{
	struct dl_conn_item *item, *next;

	for (item = c->out.item; item; item = next) {
		next = item->next;
		free_item(item, 0);
	}
	c->out = (struct dl_conn_out){0};
	dl_buf_free(&c->control);
}
