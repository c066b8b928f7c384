#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "cmd/learn/fragment.h"
#include "cmd/learn/weights.h"
#include "tensor/coded.h"

struct push *weights_push(struct weights *w, const struct dl_learn_action *a)
{
	struct push *push = dl_alloc(sizeof *push), **at = &w->push;

	/* The syncer takes them in order, so they are kept in order. */
	while (*at)
		at = &(*at)->next;
	push->owner = w;
	push->what = *a;
	*at = push;
	return push;
}

struct push *weights_find(struct weights *w, uint32_t p, uint64_t seq)
{
	struct push *push = w->push;

	while (push && (push->what.fragment != p || push->what.seq != seq))
		push = push->next;
	return push;
}

int weights_unread(const struct weights *w, uint32_t p)
{
	const struct push *push = w->push;

	while (push && (push->what.fragment != p || push->data))
		push = push->next;
	return push != NULL;
}

/* values - anchor in place; 1 when not all of it is finite. */
static int subtract(float *values, const float *anchor, size_t n)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		values[i] -= anchor[i];
		bad |= !(fabsf(values[i]) <= FLT_MAX);
	}
	return bad;
}

/* The delta becomes data in the codec of pushes, and what they decode to: 65
 * when the codec cannot hold it. */
static int encode(struct weights *w, struct push *push, float *delta, size_t n,
	struct dl_err *e)
{
	uint32_t p = push->what.fragment;
	struct dl_coded coded;
	int bad = 0;

	push->bytes = dl_coded_bytes(w->layout, p, &w->quant);
	push->data = shelf_take_bytes(&w->shelf, push->bytes);
	dl_coded_encode(NULL, w->layout, p, &w->quant, delta, push->data);
	dl_coded_init(&coded, w->layout, p, &w->quant, push->data);
	dl_coded_decode(NULL, &coded, delta);
	dl_coded_release(&coded);
	for (size_t i = 0; i < n; i++)
		bad |= !(fabsf(delta[i]) <= FLT_MAX);
	if (!bad)
		return 0;
	shelf_give_bytes(&w->shelf, push->data, push->bytes);
	push->data = NULL;
	return dl_fail(e, DL_DATA, "fragment %u: its delta is too large for %s",
		p, dl_codec_name(w->quant.codec));
}

/* As encode, for f32: nothing is lost, and nothing copied. */
static void keep(struct weights *w, struct push *push, float *delta)
{
	push->bytes = shelf_bytes(&w->shelf, push->what.fragment);
	push->data = delta;
}

int weights_read_push(struct weights *w, struct push *push, const char *path,
	struct dl_err *e)
{
	uint32_t p = push->what.fragment;
	size_t n = w->layout->fragment[p].elements;
	float *delta = shelf_take(&w->shelf, p), *anchor = w->anchor[p];
	int code = fragment_read(w->layout, p, delta, path, e);

	if (!code && subtract(delta, anchor, n))
		code = dl_fail(e, DL_DATA,
			"fragment %u: the trainer's values are not finite", p);
	if (!code && w->quant.codec == DL_CODEC_F32)
		keep(w, push, delta);
	else if (!code)
		code = encode(w, push, delta, n, e);
	for (size_t i = 0; !code && i < n; i++)
		anchor[i] += delta[i];
	if (w->came[p].file == CAME_DELTA)
		w->came[p].file = CAME_UNWRITTEN;
	if (push->data != delta)
		shelf_give(&w->shelf, p, delta);
	return code;
}

void weights_drop(struct weights *w, struct push *push)
{
	struct push **at = &w->push;

	if (!push->settled || push->sending)
		return;
	while (*at != push)
		at = &(*at)->next;
	*at = push->next;
	shelf_give_bytes(&w->shelf, push->data, push->bytes);
	free(push);
}
