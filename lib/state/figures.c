#include "state/figures.h"

#include <string.h>

#include "state/fields.h"

static const char format[] = "dl-stat 1";

#define COUNT(array) (sizeof(array) / sizeof *(array))

#define TOTAL(key, type, member)                                               \
	{                                                                      \
		key, type, offsetof(struct dl_stat_totals, member), NULL       \
	}
static const struct dl_field totals[] = {
	TOTAL("fragments", DL_FIELD_U64, fragments),
	TOTAL("epoch", DL_FIELD_U64, epoch),
	TOTAL("starts", DL_FIELD_U64, starts),
	TOTAL("clock", DL_FIELD_U64, clock),
	TOTAL("tokens", DL_FIELD_U64, tokens),
	TOTAL("first", DL_FIELD_I64, first),
	TOTAL("last", DL_FIELD_I64, last),
	TOTAL("live", DL_FIELD_U64, live),
	TOTAL("rounds", DL_FIELD_U64, rounds),
	TOTAL("closed", DL_FIELD_U64, closed),
	TOTAL("merges", DL_FIELD_U64, merges),
	TOTAL("members", DL_FIELD_U64, members),
	TOTAL("reports", DL_FIELD_U64, reports),
	TOTAL("contributions", DL_FIELD_U64, contributions),
	TOTAL("ending", DL_FIELD_U64, ending),
	TOTAL("done", DL_FIELD_U64, done),
	TOTAL("participation", DL_FIELD_REAL, participation),
	TOTAL("h", DL_FIELD_REAL, h),
	TOTAL("goodput", DL_FIELD_REAL, goodput),
	TOTAL("uptime", DL_FIELD_REAL, uptime),
	TOTAL("up_bits", DL_FIELD_REAL, up_bits),
	TOTAL("down_bits", DL_FIELD_REAL, down_bits),
	TOTAL("quorum_ns", DL_FIELD_REAL, quorum_ns),
	TOTAL("grace_ns", DL_FIELD_REAL, grace_ns),
	TOTAL("sync_ns", DL_FIELD_REAL, sync_ns),
	TOTAL("step_ns", DL_FIELD_REAL, step_ns),
};

#define MEMBER(key, type, member)                                              \
	{                                                                      \
		key, type, offsetof(struct dl_stat_member, member), NULL       \
	}
#define REFUSED(key, why)                                                      \
	MEMBER("refused_" key, DL_FIELD_U64, info.refused[why])
static const struct dl_field members[] = {
	{"state", DL_FIELD_WORD, offsetof(struct dl_stat_member, state),
		dl_stat_state_words},
	MEMBER("clock", DL_FIELD_U64, clock),
	MEMBER("lag", DL_FIELD_U64, lag),
	MEMBER("steps", DL_FIELD_U64, steps),
	MEMBER("tokens", DL_FIELD_U64, tokens),
	MEMBER("rate", DL_FIELD_REAL, rate),
	MEMBER("share", DL_FIELD_REAL, share),
	MEMBER("first", DL_FIELD_I64, first),
	MEMBER("seen", DL_FIELD_I64, seen),
	MEMBER("joins", DL_FIELD_U64, joins),
	MEMBER("loss", DL_FIELD_REAL, loss),
	MEMBER("away_ns", DL_FIELD_I64, ns[DL_STAT_AWAY]),
	MEMBER("joining_ns", DL_FIELD_I64, ns[DL_STAT_JOINING]),
	MEMBER("training_ns", DL_FIELD_I64, ns[DL_STAT_TRAINING]),
	MEMBER("stalled_ns", DL_FIELD_I64, ns[DL_STAT_STALLED]),
	MEMBER("rounds", DL_FIELD_U64, info.rounds),
	MEMBER("reported", DL_FIELD_U64, info.reported),
	MEMBER("pushes", DL_FIELD_U64, info.pushes),
	MEMBER("merged", DL_FIELD_U64, info.merged_pushes),
	MEMBER("merged_steps", DL_FIELD_U64, info.merged_steps),
	MEMBER("merged_tokens", DL_FIELD_U64, info.merged_tokens),
	MEMBER("late", DL_FIELD_U64, info.late_pushes),
	MEMBER("wasted", DL_FIELD_U64, wasted),
	MEMBER("again", DL_FIELD_U64, info.again),
	MEMBER("scaled", DL_FIELD_U64, info.scaled),
	REFUSED("finite", DL_REFUSED_FINITE),
	REFUSED("empty", DL_REFUSED_EMPTY),
	REFUSED("base", DL_REFUSED_BASE),
	REFUSED("count", DL_REFUSED_COUNT),
	REFUSED("clock", DL_REFUSED_CLOCK),
	REFUSED("rate", DL_REFUSED_RATE),
	REFUSED("norm", DL_REFUSED_NORM),
	REFUSED("end", DL_REFUSED_END),
	REFUSED("barred", DL_REFUSED_BARRED),
	MEMBER("elements_up", DL_FIELD_U64, info.elements_up),
	MEMBER("bytes_up", DL_FIELD_U64, info.bytes_up),
	MEMBER("elements_down", DL_FIELD_U64, info.elements_down),
	MEMBER("bytes_down", DL_FIELD_U64, info.bytes_down),
};

#define FRAGMENT(key, type, member)                                            \
	{                                                                      \
		key, type, offsetof(struct dl_stat_fragment, member), NULL     \
	}
static const struct dl_field fragments[] = {
	FRAGMENT("version", DL_FIELD_VERSION, version),
	FRAGMENT("committed", DL_FIELD_I64, committed),
	FRAGMENT("rounds", DL_FIELD_U64, rounds),
	FRAGMENT("closed", DL_FIELD_U64, closed),
	FRAGMENT("merges", DL_FIELD_U64, merges),
	FRAGMENT("members", DL_FIELD_U64, members),
	FRAGMENT("reports", DL_FIELD_U64, reports),
	FRAGMENT("open_ns", DL_FIELD_I64, open_ns),
	FRAGMENT("norm", DL_FIELD_REAL, norm),
	FRAGMENT("cosine", DL_FIELD_REAL, alike.mean),
	FRAGMENT("cosine_min", DL_FIELD_REAL, alike.least),
};

#define BUCKET(key, type, member)                                              \
	{                                                                      \
		key, type, offsetof(struct dl_history_part, member), NULL      \
	}
static const struct dl_field buckets[] = {
	BUCKET("tokens", DL_FIELD_U64, tokens),
	BUCKET("wasted", DL_FIELD_REAL, wasted),
	BUCKET("refused", DL_FIELD_U64, refused),
	BUCKET("bytes_up", DL_FIELD_U64, bytes_up),
	BUCKET("bytes_down", DL_FIELD_U64, bytes_down),
	BUCKET("merges", DL_FIELD_U64, merges),
	BUCKET("members", DL_FIELD_U64, members),
	BUCKET("reports", DL_FIELD_U64, reports),
	BUCKET("losses", DL_FIELD_U64, losses),
	BUCKET("loss", DL_FIELD_REAL, loss),
	BUCKET("loss_min", DL_FIELD_REAL, loss_min),
	BUCKET("loss_max", DL_FIELD_REAL, loss_max),
	BUCKET("training_ns", DL_FIELD_REAL, training_ns),
	BUCKET("due_ns", DL_FIELD_REAL, due_ns),
};

static void put_all(struct dl_buf *out, const struct dl_field *f, size_t n,
	const void *base)
{
	dl_put_fields(out, f, n, UINT64_MAX, base);
}

static int take_all(
	struct dl_json *j, const struct dl_field *f, size_t n, void *base)
{
	return dl_take_fields(j, f, n, UINT64_MAX, base);
}

/* Between items: each has a line of its own. */
static void put_item(struct dl_buf *out, size_t i)
{
	dl_buf_str(out, i ? ",\n{" : "\n{");
}

static void put_member(struct dl_buf *out, const struct dl_stat_member *m)
{
	dl_put_key(out, "name");
	dl_put_string(out, m->name);
	put_all(out, members, COUNT(members), m);
	dl_put_key(out, "timeline");
	dl_put_string(out, m->timeline);
	dl_buf_byte(out, '}');
}

static void put_history(struct dl_buf *out, const struct dl_history *h)
{
	dl_put_key(out, "history");
	dl_buf_byte(out, '{');
	dl_put_key(out, "width_ns");
	dl_put_u64(out, (uint64_t)h->width);
	dl_put_key(out, "buckets");
	dl_buf_byte(out, '[');
	for (size_t i = 0; i < h->n; i++) {
		put_item(out, i);
		put_all(out, buckets, COUNT(buckets), h->bucket + i);
		dl_buf_byte(out, '}');
	}
	dl_buf_str(out, "]}");
}

void dl_figures_write(struct dl_buf *out, const struct dl_stat *s)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "format");
	dl_put_string(out, format);
	dl_put_key(out, "run");
	dl_put_string(out, s->run);
	dl_put_key(out, "totals");
	dl_buf_byte(out, '{');
	put_all(out, totals, COUNT(totals), &s->totals);
	dl_buf_byte(out, '}');
	dl_put_key(out, "all");
	dl_buf_byte(out, '{');
	put_all(out, members, COUNT(members), &s->all);
	dl_buf_byte(out, '}');
	dl_put_key(out, "members");
	dl_buf_byte(out, '[');
	for (size_t i = 0; i < s->members; i++) {
		put_item(out, i);
		put_member(out, s->member + i);
	}
	dl_buf_byte(out, ']');
	dl_put_key(out, "fragments");
	dl_buf_byte(out, '[');
	for (size_t p = 0; p < s->totals.fragments; p++) {
		put_item(out, p);
		put_all(out, fragments, COUNT(fragments), s->fragment + p);
		dl_buf_byte(out, '}');
	}
	dl_buf_byte(out, ']');
	put_history(out, &s->history);
	dl_buf_str(out, "}\n");
}

static int take_timeline(struct dl_json *j, struct dl_stat_member *m)
{
	m->timeline = dl_alloc(DL_HISTORY_ROOM + 1);
	if (dl_take_key(j, "timeline") ||
		dl_take_string(j, m->timeline, DL_HISTORY_ROOM + 1))
		return DL_DATA;
	return m->timeline[strspn(m->timeline, dl_stat_state_letters)]
		       ? dl_refuse(j, "a state that is not known here")
		       : 0;
}

static int take_member(struct dl_json *j, struct dl_stat *s)
{
	struct dl_stat_member *m;

	if (s->members == s->room) {
		s->room = s->room ? 2 * s->room : 8;
		s->member = dl_resize(s->member, s->room, sizeof *s->member);
	}
	m = s->member + s->members;
	*m = (struct dl_stat_member){0};
	s->members++;
	if (dl_take_key(j, "name") || dl_take_name(j, m->name))
		return DL_DATA;
	if (s->members > 1 && strcmp(m[-1].name, m->name) >= 0)
		return dl_refuse(j, "a name out of order");
	if (take_all(j, members, COUNT(members), m) || take_timeline(j, m))
		return DL_DATA;
	return dl_take(j, DL_JSON_OBJECT_END);
}

static int take_members(struct dl_json *j, struct dl_stat *s)
{
	int more;

	if (dl_take_key(j, "members") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_OBJECT)) > 0)
		if (take_member(j, s))
			return DL_DATA;
	return more ? DL_DATA : 0;
}

static int take_fragments(struct dl_json *j, struct dl_stat *s)
{
	uint64_t n = 0;
	size_t room = 0;
	int more;

	if (dl_take_key(j, "fragments") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_OBJECT)) > 0) {
		if (n == room) {
			room = room ? 2 * room : 32;
			s->fragment = dl_resize(
				s->fragment, room, sizeof *s->fragment);
		}
		s->fragment[n] = (struct dl_stat_fragment){0};
		if (take_all(j, fragments, COUNT(fragments), s->fragment + n) ||
			dl_take(j, DL_JSON_OBJECT_END))
			return DL_DATA;
		n++;
	}
	if (!more && n != s->totals.fragments)
		return dl_refuse(j, "another number of fragments");
	return more ? DL_DATA : 0;
}

static int take_buckets(struct dl_json *j, struct dl_history *h)
{
	int more;

	if (dl_take_key(j, "buckets") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_OBJECT)) > 0) {
		if (h->n == DL_HISTORY_ROOM)
			return dl_refuse(j, "more buckets than there may be");
		if (take_all(j, buckets, COUNT(buckets), h->bucket + h->n++) ||
			dl_take(j, DL_JSON_OBJECT_END))
			return DL_DATA;
	}
	return more ? DL_DATA : 0;
}

static int take_history(struct dl_json *j, struct dl_stat *s)
{
	struct dl_history *h = &s->history;
	uint64_t width;

	if (dl_take_key(j, "history") || dl_take(j, DL_JSON_OBJECT) ||
		dl_take_key(j, "width_ns") || dl_take_u64(j, &width))
		return DL_DATA;
	if (!width || width > INT64_MAX / DL_HISTORY_ROOM)
		return dl_refuse(j, "a width out of range");
	h->width = (int64_t)width;
	if (take_buckets(j, h) || dl_take(j, DL_JSON_OBJECT_END))
		return DL_DATA;
	for (size_t i = 0; i < s->members; i++)
		if (strlen(s->member[i].timeline) != h->n)
			return dl_refuse(j, "timelines of another length");
	return 0;
}

static int take_object(struct dl_json *j, const char *key,
	const struct dl_field *f, size_t n, void *base)
{
	if (dl_take_key(j, key) || dl_take(j, DL_JSON_OBJECT) ||
		take_all(j, f, n, base))
		return DL_DATA;
	return dl_take(j, DL_JSON_OBJECT_END);
}

static int take(struct dl_json *j, struct dl_stat *s)
{
	if (dl_take(j, DL_JSON_OBJECT) || dl_take_key(j, "format") ||
		dl_take_exactly(j, format) || dl_take_key(j, "run") ||
		dl_take_name(j, s->run) ||
		take_object(j, "totals", totals, COUNT(totals), &s->totals) ||
		take_object(j, "all", members, COUNT(members), &s->all) ||
		take_members(j, s) || take_fragments(j, s) ||
		take_history(j, s) || dl_take(j, DL_JSON_OBJECT_END))
		return DL_DATA;
	strcpy(s->all.name, "*");
	return dl_take(j, DL_JSON_END);
}

int dl_figures_parse(
	struct dl_stat *s, const char *text, size_t n, struct dl_err *e)
{
	struct dl_json j;
	int rc;

	dl_json_init(&j, text, n, e);
	rc = take(&j, s);
	dl_json_release(&j);
	return rc;
}
