/* Lines of a tape: what goes in comes out. */
#include "state/tape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "state/fields.h"
#include "state/saved.h"

static const char format[] = "dl-tape 1";

#define EVENT(key, type, member)                                               \
	{                                                                      \
		key, type, offsetof(struct dl_sync_event, member), NULL        \
	}
enum {
	INSTANCE,
	FRAGMENT,
	SEQ,
	STEP,
	CLOCK,
	STEPS,
	TOKENS,
	BASE,
	VERSION,
	NORM,
	LOSS,
	PUSH,
	ELEMENTS,
	BYTES,
	EVENT_FIELDS
};
static const struct dl_field event_fields[EVENT_FIELDS] = {
	[INSTANCE] = EVENT("instance", DL_FIELD_U64, instance),
	[FRAGMENT] = EVENT("fragment", DL_FIELD_U32, fragment),
	[SEQ] = EVENT("seq", DL_FIELD_U64, seq),
	[STEP] = EVENT("step", DL_FIELD_U64, step),
	[CLOCK] = EVENT("clock", DL_FIELD_U64, clock),
	[STEPS] = EVENT("steps", DL_FIELD_U64, steps),
	[TOKENS] = EVENT("tokens", DL_FIELD_U64, tokens),
	[BASE] = EVENT("base", DL_FIELD_VERSION, base),
	[VERSION] = EVENT("version", DL_FIELD_VERSION, version),
	[NORM] = EVENT("norm", DL_FIELD_REAL, norm),
	[LOSS] = EVENT("loss", DL_FIELD_REAL, loss),
	[PUSH] = EVENT("push", DL_FIELD_U64, push),
	[ELEMENTS] = EVENT("elements", DL_FIELD_U64, elements),
	[BYTES] = EVENT("bytes", DL_FIELD_U64, bytes),
};

#define BIT(field) (UINT64_C(1) << (field))
enum { LEARNER = 1, VERSIONS = 2 };

/* What each kind of event carries (sync.h). */
static const struct kind {
	const char *name;
	int who; /* LEARNER: a learner and its instance; VERSIONS: P of them */
	uint64_t fields;
} kinds[DL_EV_KINDS] = {
	[DL_EV_JOIN] = {"join", LEARNER | VERSIONS,
		BIT(INSTANCE) | BIT(CLOCK) | BIT(STEPS) | BIT(TOKENS)},
	[DL_EV_LEAVE] = {"leave", LEARNER, BIT(INSTANCE)},
	[DL_EV_STEP] = {"step", LEARNER,
		BIT(INSTANCE) | BIT(CLOCK) | BIT(STEPS) | BIT(TOKENS) |
			BIT(LOSS)},
	[DL_EV_PUSH] = {"push", LEARNER,
		BIT(INSTANCE) | BIT(FRAGMENT) | BIT(SEQ) | BIT(STEP) |
			BIT(STEPS) | BIT(TOKENS) | BIT(BASE) | BIT(NORM) |
			BIT(PUSH) | BIT(ELEMENTS) | BIT(BYTES)},
	[DL_EV_BARRED] = {"barred", LEARNER,
		BIT(INSTANCE) | BIT(FRAGMENT) | BIT(SEQ) | BIT(STEPS) |
			BIT(BYTES)},
	[DL_EV_APPLIED] = {"applied", LEARNER,
		BIT(INSTANCE) | BIT(FRAGMENT) | BIT(VERSION) | BIT(ELEMENTS) |
			BIT(BYTES)},
	[DL_EV_WANT] = {"want", LEARNER, BIT(INSTANCE) | BIT(FRAGMENT)},
	[DL_EV_DRAINED] = {"drained", LEARNER, BIT(INSTANCE)},
	[DL_EV_MERGED] = {"merged", 0, BIT(FRAGMENT) | BIT(VERSION)},
	[DL_EV_TIME] = {"time", 0, 0},
	[DL_EV_END] = {"end", 0, 0},
};

static const char *const graces[] = {"none", "adaptive", "fixed", NULL};
static const char *const lates[] = {"drop", "next", "now", NULL};
static const char *const nos_and_yes[] = {"no", "yes", NULL};
static const char *const belows[] = {"wait", "merge", NULL};

#define CONFIG(key, type, member, words)                                       \
	{                                                                      \
		key, type, offsetof(struct dl_sync_config, member), words      \
	}
static const struct dl_field config_fields[] = {
	CONFIG("fragments", DL_FIELD_U32, schedule.fragments, NULL),
	CONFIG("h", DL_FIELD_U64, schedule.h, NULL),
	CONFIG("shard", DL_FIELD_U32, shard, NULL),
	CONFIG("shards", DL_FIELD_U32, shards, NULL),
	CONFIG("quorum", DL_FIELD_U32, quorum, NULL),
	CONFIG("tau", DL_FIELD_U64, tau, NULL),
	CONFIG("min_h", DL_FIELD_U64, min_h, NULL),
	CONFIG("grace", DL_FIELD_WORD, grace, graces),
	CONFIG("gamma", DL_FIELD_REAL, gamma, NULL),
	CONFIG("grace_ns", DL_FIELD_NS, grace_ns, NULL),
	CONFIG("late", DL_FIELD_WORD, late, lates),
	CONFIG("below", DL_FIELD_WORD, below, belows),
	CONFIG("below_ns", DL_FIELD_NS, below_ns, NULL),
	CONFIG("stall_ns", DL_FIELD_NS, stall_ns, NULL),
	CONFIG("end_ns", DL_FIELD_NS, end_ns, NULL),
	CONFIG("max_rate", DL_FIELD_REAL, max_rate, NULL),
	CONFIG("max_norm", DL_FIELD_REAL, max_norm, NULL),
	CONFIG("refuse_norm", DL_FIELD_REAL, refuse_norm, NULL),
	CONFIG("budget_tokens", DL_FIELD_U64, budget_tokens, NULL),
	CONFIG("budget_steps", DL_FIELD_U64, budget_steps, NULL),
	CONFIG("passes", DL_FIELD_WORD, passes, nos_and_yes),
};
enum { CONFIG_FIELDS = sizeof config_fields / sizeof *config_fields };

static const struct dl_field time_fields[] = {
	{"wall", DL_FIELD_NS, offsetof(struct dl_tape_line, wall), NULL},
	{"now", DL_FIELD_NS, offsetof(struct dl_tape_line, now), NULL},
};
enum { TIME_FIELDS = sizeof time_fields / sizeof *time_fields };

static void put_time(struct dl_buf *out, int64_t wall, int64_t now)
{
	dl_put_key(out, "wall");
	dl_put_u64(out, (uint64_t)wall);
	dl_put_key(out, "now");
	dl_put_u64(out, (uint64_t)now);
}

void dl_tape_write_start(struct dl_buf *out, const struct dl_tape_start *s,
	int64_t wall, int64_t now)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "format");
	dl_put_string(out, format);
	put_time(out, wall, now);
	dl_put_key(out, "run");
	dl_put_string(out, s->run);
	dl_put_key(out, "layout");
	dl_put_string(out, s->layout);
	dl_put_key(out, "config");
	dl_buf_byte(out, '{');
	dl_put_fields(
		out, config_fields, CONFIG_FIELDS, UINT64_MAX, &s->config);
	dl_buf_byte(out, '}');
	dl_put_key(out, "saved");
	if (s->restored)
		dl_saved_write(out, &s->saved, "");
	else
		dl_buf_str(out, "null");
	dl_buf_str(out, "}\n");
}

static void put_versions(
	struct dl_buf *out, const struct dl_version *v, uint32_t n)
{
	dl_put_key(out, "versions");
	dl_buf_byte(out, '[');
	for (uint32_t p = 0; p < n; p++) {
		if (p)
			dl_buf_byte(out, ',');
		dl_put_version(out, v[p]);
	}
	dl_buf_byte(out, ']');
}

static void put_made(struct dl_buf *out, const struct dl_tape_made *made)
{
	if (*made->values) {
		dl_put_key(out, "values");
		dl_put_string(out, made->values);
		dl_put_key(out, "momentum");
		dl_put_string(out, made->momentum);
	}
	dl_put_key(out, "trail");
	dl_put_string(out, made->trail);
	if (isnan(made->alike.mean))
		return;
	dl_put_key(out, "cosine");
	dl_put_real(out, made->alike.mean);
	dl_put_key(out, "cosine_min");
	dl_put_real(out, made->alike.least);
}

void dl_tape_write_event(struct dl_buf *out, const struct dl_sync_event *ev,
	const struct dl_tape_made *made, uint32_t fragments, int64_t wall)
{
	const struct kind *k = kinds + ev->kind;

	dl_buf_byte(out, '{');
	dl_put_key(out, "event");
	dl_put_string(out, k->name);
	put_time(out, wall, ev->now);
	if (k->who & LEARNER) {
		dl_put_key(out, "learner");
		dl_put_string(out, ev->learner);
	}
	dl_put_fields(out, event_fields, EVENT_FIELDS, k->fields, ev);
	if (k->who & VERSIONS)
		put_versions(out, ev->versions, fragments);
	if (made && *made->trail)
		put_made(out, made);
	dl_buf_str(out, "}\n");
}

/* What dl_sync_new would stumble over. */
static int check_config(struct dl_json *j, const struct dl_sync_config *c)
{
	if (!c->schedule.fragments || c->schedule.fragments > DL_FRAGMENTS_MAX)
		return dl_refuse(j, "no fragments, or too many");
	if (!c->schedule.h)
		return dl_refuse(j, "h is 0");
	return c->quorum ? 0 : dl_refuse(j, "quorum is 0");
}

static int take_saved(struct dl_json *j, struct dl_tape_start *s)
{
	enum dl_json_token t;

	if (dl_take_key(j, "saved"))
		return DL_DATA;
	t = dl_json_next(j);
	if (t == DL_JSON_NULL)
		return dl_take(j, DL_JSON_OBJECT_END);
	if (t != DL_JSON_OBJECT)
		return t == DL_JSON_BAD ? DL_DATA
					: dl_refuse(j, "not null or state");
	s->restored = 1;
	if (dl_saved_parse(j, &s->saved))
		return DL_DATA;
	if (s->saved.fragments != s->config.schedule.fragments)
		return dl_refuse(j, "state of another number of fragments");
	return dl_take(j, DL_JSON_OBJECT_END);
}

static int take_start(struct dl_json *j, struct dl_tape_line *l)
{
	struct dl_tape_start *s = &l->start;

	l->kind = DL_TAPE_START;
	if (dl_take_exactly(j, format) ||
		dl_take_fields(j, time_fields, TIME_FIELDS, UINT64_MAX, l) ||
		dl_take_key(j, "run") || dl_take_name(j, s->run) ||
		dl_take_key(j, "layout") || dl_take_hash(j, s->layout) ||
		dl_take_key(j, "config") || dl_take(j, DL_JSON_OBJECT) ||
		dl_take_fields(j, config_fields, CONFIG_FIELDS, UINT64_MAX,
			&s->config) ||
		dl_take(j, DL_JSON_OBJECT_END) || check_config(j, &s->config))
		return DL_DATA;
	return take_saved(j, s);
}

static int take_kind(struct dl_json *j, struct dl_sync_event *ev)
{
	if (dl_take(j, DL_JSON_STRING))
		return DL_DATA;
	for (unsigned i = 0; i < DL_EV_KINDS; i++)
		if (dl_json_is(j, kinds[i].name)) {
			ev->kind = (enum dl_sync_event_kind)i;
			return 0;
		}
	return dl_refuse(j, "an event that is not known here");
}

static int take_versions(struct dl_json *j, struct dl_tape_line *l)
{
	size_t room = 0;
	int more;

	if (dl_take_key(j, "versions") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_STRING)) > 0) {
		if (l->versions == room) {
			room = room ? 2 * room : 32;
			l->version =
				dl_resize(l->version, room, sizeof *l->version);
		}
		if (dl_this_version(j, l->version + l->versions++))
			return DL_DATA;
	}
	l->event.versions = l->version;
	return more ? DL_DATA : 0;
}

/* Of a line that may end here: 0 when it does, 1 after that key, -1 when
 * neither (65). */
static int take_more(struct dl_json *j, const char *key)
{
	enum dl_json_token t = dl_json_next(j);
	char fact[64];

	if (t == DL_JSON_OBJECT_END)
		return 0;
	if (t == DL_JSON_KEY && dl_json_is(j, key))
		return 1;
	snprintf(fact, sizeof fact, "expected the key '%s' or the end", key);
	if (t != DL_JSON_BAD)
		dl_refuse(j, fact);
	return -1;
}

static int take_alike(struct dl_json *j, struct dl_alike *alike)
{
	int more = take_more(j, "cosine");

	if (more <= 0)
		return more ? DL_DATA : 0;
	if (dl_take_real(j, &alike->mean) || dl_take_key(j, "cosine_min") ||
		dl_take_real(j, &alike->least))
		return DL_DATA;
	if (!isfinite(alike->mean) || !isfinite(alike->least))
		return dl_refuse(j, "not cosines");
	return dl_take(j, DL_JSON_OBJECT_END);
}

static int take_hashes(struct dl_json *j, struct dl_tape_made *made)
{
	return dl_take_hash(j, made->values) || dl_take_key(j, "momentum") ||
			       dl_take_hash(j, made->momentum) ||
			       dl_take_key(j, "trail")
		       ? DL_DATA
		       : 0;
}

/* Tapes of before do not have it, or end before the cosines. */
static int take_made(struct dl_json *j, struct dl_tape_made *made)
{
	enum dl_json_token t = dl_json_next(j);

	made->alike = (struct dl_alike)DL_ALIKE_UNKNOWN;
	if (t == DL_JSON_OBJECT_END || t == DL_JSON_BAD)
		return t == DL_JSON_BAD ? DL_DATA : 0;
	if (t == DL_JSON_KEY && dl_json_is(j, "values")) {
		if (take_hashes(j, made))
			return DL_DATA;
	} else if (t != DL_JSON_KEY || !dl_json_is(j, "trail")) {
		return dl_refuse(
			j, "expected the key 'values', 'trail' or the end");
	}
	return dl_take_hex(j, made->trail, DL_TRAIL_HEX - 1)
		       ? DL_DATA
		       : take_alike(j, &made->alike);
}

static int take_event(struct dl_json *j, struct dl_tape_line *l)
{
	struct dl_sync_event *ev = &l->event;
	const struct kind *k;

	l->kind = DL_TAPE_EVENT;
	if (take_kind(j, ev) ||
		dl_take_fields(j, time_fields, TIME_FIELDS, UINT64_MAX, l))
		return DL_DATA;
	ev->now = l->now;
	k = kinds + ev->kind;
	if (k->who & LEARNER) {
		if (dl_take_key(j, "learner") || dl_take_name(j, l->learner))
			return DL_DATA;
		ev->learner = l->learner;
	}
	if (dl_take_fields(j, event_fields, EVENT_FIELDS, k->fields, ev))
		return DL_DATA;
	if (k->who & VERSIONS && take_versions(j, l))
		return DL_DATA;
	return ev->kind == DL_EV_MERGED ? take_made(j, &l->made)
					: dl_take(j, DL_JSON_OBJECT_END);
}

static int take_line(struct dl_json *j, struct dl_tape_line *l)
{
	int rc;

	if (dl_take(j, DL_JSON_OBJECT) || dl_take(j, DL_JSON_KEY))
		return DL_DATA;
	if (dl_json_is(j, "format"))
		rc = take_start(j, l);
	else if (dl_json_is(j, "event"))
		rc = take_event(j, l);
	else
		rc = dl_refuse(j, "neither a format nor an event");
	return rc ? DL_DATA : dl_take(j, DL_JSON_END);
}

int dl_tape_parse_line(
	struct dl_tape_line *l, const char *text, size_t n, struct dl_err *e)
{
	struct dl_json j;
	int rc;

	*l = (struct dl_tape_line){0};
	dl_json_init(&j, text, n, e);
	rc = take_line(&j, l);
	dl_json_release(&j);
	return rc;
}

void dl_tape_line_release(struct dl_tape_line *l)
{
	dl_sync_saved_release(&l->start.saved);
	free(l->version);
	*l = (struct dl_tape_line){0};
}
