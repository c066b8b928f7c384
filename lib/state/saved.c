#include "state/saved.h"

#include <math.h>

#include "state/fields.h"

static const struct dl_field top_fields[] = {
	{"epoch", DL_FIELD_U64, offsetof(struct dl_sync_saved, epoch), NULL},
	{"clock", DL_FIELD_U64, offsetof(struct dl_sync_saved, clock), NULL},
	{"tokens", DL_FIELD_U64, offsetof(struct dl_sync_saved, tokens), NULL},
};
enum { TOP_FIELDS = sizeof top_fields / sizeof *top_fields };

static const struct dl_field fragment_fields[] = {
	{"version", DL_FIELD_VERSION,
		offsetof(struct dl_sync_saved_fragment, version), NULL},
	{"step", DL_FIELD_U64, offsetof(struct dl_sync_saved_fragment, step),
		NULL},
};
enum { FRAGMENT_FIELDS = sizeof fragment_fields / sizeof *fragment_fields };

static void next_item(struct dl_buf *out, size_t i, const char *space)
{
	if (i)
		dl_buf_byte(out, ',');
	dl_buf_str(out, space);
}

/* Norms are a ring, written oldest first. */
static void put_fragment(
	struct dl_buf *out, const struct dl_sync_saved_fragment *f)
{
	uint32_t n = f->norms < DL_NORMS_KEPT ? f->norms : DL_NORMS_KEPT;

	dl_buf_byte(out, '{');
	dl_put_fields(out, fragment_fields, FRAGMENT_FIELDS, UINT64_MAX, f);
	dl_put_key(out, "norms");
	dl_buf_byte(out, '[');
	for (uint32_t i = 0; i < n; i++) {
		next_item(out, i, "");
		dl_put_real(out, f->norm[(f->norms - n + i) % DL_NORMS_KEPT]);
	}
	dl_buf_str(out, "]}");
}

static void put_learner(struct dl_buf *out,
	const struct dl_sync_saved_learner *l, uint32_t fragments)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "name");
	dl_put_string(out, l->name);
	dl_put_key(out, "instance");
	dl_put_u64(out, l->instance);
	dl_put_key(out, "merged");
	dl_buf_byte(out, '[');
	for (uint32_t p = 0; p < fragments; p++) {
		next_item(out, p, "");
		dl_put_u64(out, l->merged[p]);
	}
	dl_buf_str(out, "]}");
}

void dl_saved_write(
	struct dl_buf *out, const struct dl_sync_saved *v, const char *space)
{
	dl_buf_byte(out, '{');
	dl_put_fields(out, top_fields, TOP_FIELDS, UINT64_MAX, v);
	dl_put_key(out, "fragments");
	dl_buf_byte(out, '[');
	for (uint32_t p = 0; p < v->fragments; p++) {
		next_item(out, p, space);
		put_fragment(out, v->fragment + p);
	}
	dl_buf_byte(out, ']');
	dl_put_key(out, "learners");
	dl_buf_byte(out, '[');
	for (size_t i = 0; i < v->learners; i++) {
		next_item(out, i, space);
		put_learner(out, v->learner + i, v->fragments);
	}
	dl_buf_str(out, "]}");
}

static int take_norms(struct dl_json *j, struct dl_sync_saved_fragment *f)
{
	int more;

	if (dl_take_key(j, "norms") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_NUMBER)) > 0) {
		if (f->norms == DL_NORMS_KEPT)
			return dl_refuse(j, "too many norms");
		if (dl_json_double(j, f->norm + f->norms))
			return DL_DATA;
		if (f->norm[f->norms++] < 0)
			return dl_refuse(j, "a norm below 0");
	}
	return more ? DL_DATA : 0;
}

static int take_fragment(
	struct dl_json *j, struct dl_sync_saved_fragment *f, uint64_t epoch)
{
	*f = (struct dl_sync_saved_fragment){0};
	if (dl_take_fields(
		    j, fragment_fields, FRAGMENT_FIELDS, UINT64_MAX, f) ||
		take_norms(j, f) || dl_take(j, DL_JSON_OBJECT_END))
		return DL_DATA;
	if (!f->version.epoch || f->version.epoch > epoch)
		return dl_refuse(j, "a version outside the run's epochs");
	return 0;
}

/* Arrays grow as they are read, so memory stays in proportion to the input. */
static void *room_for(void *array, size_t n, size_t size)
{
	return n & (n - 1) ? array : dl_resize(array, n ? 2 * n : 1, size);
}

static int take_fragments(struct dl_json *j, struct dl_sync_saved *v)
{
	int more;

	if (dl_take_key(j, "fragments") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_OBJECT)) > 0) {
		if (v->fragments == DL_FRAGMENTS_MAX)
			return dl_refuse(j, "too many fragments");
		v->fragment = room_for(
			v->fragment, v->fragments, sizeof *v->fragment);
		if (take_fragment(j, v->fragment + v->fragments++, v->epoch))
			return DL_DATA;
	}
	if (!more && !v->fragments)
		return dl_refuse(j, "no fragments");
	return more ? DL_DATA : 0;
}

static int take_learner(
	struct dl_json *j, struct dl_sync_saved_learner *l, uint32_t fragments)
{
	*l = (struct dl_sync_saved_learner){0};
	if (dl_take_key(j, "name") || dl_take_name(j, l->name) ||
		dl_take_key(j, "instance") || dl_take_u64(j, &l->instance) ||
		dl_take_key(j, "merged") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	l->merged = dl_alloc_array(fragments, sizeof *l->merged);
	for (uint32_t p = 0; p < fragments; p++)
		if (dl_take_u64(j, l->merged + p))
			return DL_DATA;
	if (dl_take(j, DL_JSON_ARRAY_END) || dl_take(j, DL_JSON_OBJECT_END))
		return DL_DATA;
	return 0;
}

static int take_learners(struct dl_json *j, struct dl_sync_saved *v)
{
	int more;

	if (dl_take_key(j, "learners") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_OBJECT)) > 0) {
		v->learner =
			room_for(v->learner, v->learners, sizeof *v->learner);
		if (take_learner(j, v->learner + v->learners++, v->fragments))
			return DL_DATA;
	}
	return more ? DL_DATA : 0;
}

int dl_saved_parse(struct dl_json *j, struct dl_sync_saved *v)
{
	*v = (struct dl_sync_saved){0};
	if (dl_take_fields(j, top_fields, TOP_FIELDS, UINT64_MAX, v) ||
		take_fragments(j, v) || take_learners(j, v) ||
		dl_take(j, DL_JSON_OBJECT_END))
		return DL_DATA;
	return 0;
}
