#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "link/conn_io.h"

enum {
	BATCH = 1 << 20,      /* bytes a system call */
	PIECES = 64,	      /* of them */
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

/* Begins the next frame: control first; 0 when nothing waits. */
static int begin_frame(const struct dl_conn *c, struct dl_conn_out *o)
{
	size_t n = control_waiting(c, o);

	o->channel = DL_CHANNEL_CONTROL;
	if (!n && !o->beat && o->item) {
		o->channel = DL_CHANNEL_DATA;
		n = item_size(o->item) - o->item_at;
	} else if (!n && !o->beat)
		return 0;
	o->beat = 0;
	o->frame_left = n < DL_FRAME_PAYLOAD ? n : DL_FRAME_PAYLOAD;
	o->head_left = DL_FRAME_HEAD;
	dl_frame_head(o->head, o->channel, o->frame_left);
	return 1;
}

/* The next bytes of the item being sent, and on to the next item at its end. */
static struct iovec item_piece(struct dl_conn_out *o, size_t max)
{
	const struct dl_conn_item *item = o->item;
	struct iovec v;
	size_t left;

	if (o->item_at < item->head.len) {
		v.iov_base = item->head.data + o->item_at;
		left = item->head.len - o->item_at;
	} else {
		v.iov_base = (void *)(item->data + o->item_at - item->head.len);
		left = item_size(item) - o->item_at;
	}
	v.iov_len = left < max ? left : max;
	o->item_at += v.iov_len;
	if (o->item_at == item_size(item)) {
		o->item = item->next;
		o->item_at = 0;
	}
	return v;
}

/*
 * The next piece to write, of at most max > 0 bytes, and o advanced past it;
 * empty when nothing waits. Planning walks a copy of the state, and what was
 * then written walks the state itself, so that a plan of which only a part
 * was written leaves no trace and control can overtake the rest. The head of
 * a frame is copied to head, where it outlives o.
 */
static struct iovec next_piece(const struct dl_conn *c, struct dl_conn_out *o,
	unsigned char head[DL_FRAME_HEAD], size_t max)
{
	struct iovec v = {NULL, 0};

	if (!o->head_left && !o->frame_left && !begin_frame(c, o))
		return v;
	if (o->head_left) {
		memcpy(head, o->head, DL_FRAME_HEAD);
		v.iov_base = head + DL_FRAME_HEAD - o->head_left;
		v.iov_len = o->head_left < max ? o->head_left : max;
		o->head_left -= (unsigned)v.iov_len;
		return v;
	}
	if (max > o->frame_left)
		max = o->frame_left;
	if (o->channel == DL_CHANNEL_DATA) {
		v = item_piece(o, max);
	} else {
		v.iov_base = c->control.data + o->control_at;
		v.iov_len = max;
		o->control_at += max;
	}
	o->frame_left -= v.iov_len;
	return v;
}

static void free_item(struct dl_conn_item *item, int sent)
{
	if (item->release)
		item->release(item->ctx, sent);
	dl_buf_free(&item->head);
	free(item);
}

/* n bytes have been written. */
static void advance(struct dl_conn *c, size_t n)
{
	struct dl_conn_item *item = c->out.item, *next;
	unsigned char head[DL_FRAME_HEAD];

	while (n)
		n -= next_piece(c, &c->out, head, n).iov_len;
	for (; item != c->out.item; item = next) {
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

/* Fills v with what goes out next; how many pieces, *bytes in all. */
static size_t plan(const struct dl_conn *c, struct iovec v[PIECES],
	unsigned char head[PIECES][DL_FRAME_HEAD], size_t *bytes)
{
	struct dl_conn_out o = c->out;
	size_t n;

	*bytes = 0;
	for (n = 0; n < PIECES && *bytes < BATCH; n++) {
		v[n] = next_piece(c, &o, head[n], BATCH);
		if (!v[n].iov_len)
			break;
		*bytes += v[n].iov_len;
	}
	return n;
}

int dl_conn_has_output(const struct dl_conn *c)
{
	const struct dl_conn_out *o = &c->out;

	return o->head_left || o->frame_left || o->beat || o->item ||
	       control_waiting(c, o);
}

int dl_conn_write(struct dl_conn *c, int64_t now, struct dl_err *e)
{
	unsigned char head[PIECES][DL_FRAME_HEAD];
	struct iovec v[PIECES];
	struct msghdr msg = {.msg_iov = v};
	size_t bytes;
	ssize_t n;
	int calls;

	for (calls = 0; calls < CALLS; calls++) {
		msg.msg_iovlen = plan(c, v, head, &bytes);
		if (!bytes)
			return 0;
		n = sendmsg(c->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0)
			return dl_fail_sys(e, DL_UNAVAILABLE, "sending");
		c->bytes_out += (uint64_t)n;
		c->sent = now;
		advance(c, (size_t)n);
		if ((size_t)n < bytes)
			return 0;
	}
	return 0;
}

/* Something of the first item is on its way: at least its frame is begun. */
static int begun(const struct dl_conn_out *o)
{
	return o->item_at || (o->channel == DL_CHANNEL_DATA && o->frame_left);
}

/* Where the item of that key waits whole; else where a new one is put. */
static struct dl_conn_item **find_item(struct dl_conn *c, uint64_t key)
{
	struct dl_conn_item **at = &c->out.item;

	if (*at && begun(&c->out))
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

	if (item && begun(&c->out))
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
