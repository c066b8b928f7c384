#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "link/fields.h"
#include "link/offer.h"

static int find_enum(enum form form, const char *s, unsigned *out)
{
	const char *name;
	unsigned i;

	for (i = 0; (name = dl_field_enum(form, i)); i++)
		if (strcmp(s, name) == 0) {
			*out = i;
			return 0;
		}
	return -1;
}

static int is_hash(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return !s[n] && (n == 0 || n == DL_HASH_HEX - 1);
}

static int unpack_version(const char *s, struct dl_version *out)
{
	const char *dot = strchr(s, '.');
	char epoch[24];

	if (!dot || (size_t)(dot - s) >= sizeof(epoch))
		return -1;
	memcpy(epoch, s, (size_t)(dot - s));
	epoch[dot - s] = 0;
	if (dl_parse_u64(epoch, 0, UINT64_MAX, &out->epoch))
		return -1;
	return dl_parse_u64(dot + 1, 0, UINT64_MAX, &out->number);
}

/* 0, or -1 when s is not of that form. */
static int unpack_value(const char *s, enum form form, void *at)
{
	unsigned char key[DL_KEY];
	struct dl_address link;
	uint64_t v;

	switch (form) {
	case NUMBER:
	case POSITIVE:
	case EXTRA:
		return dl_parse_u64(s, form != NUMBER, UINT64_MAX, at);
	case INDEX:
	case COUNT:
		if (dl_parse_u64(s, form == COUNT, UINT32_MAX - 1, &v))
			return -1;
		*(uint32_t *)at = (uint32_t)v;
		return 0;
	case FLAG:
	case CODE:
		if (dl_parse_u64(s, form == CODE, form == CODE ? 255 : 1, &v))
			return -1;
		*(int *)at = (int)v;
		return 0;
	case VERSION:
	case START:
		return unpack_version(s, at);
	case SLOT:
		return dl_parse_u64(s, 0, DL_SLOT_NONE - 1, at);
	case CODEC:
	case CALLED:
		if (!*s)
			return -1;
		/* fall through */
	case NAME:
		if (*s && !dl_name_ok(s, strlen(s)))
			return -1;
		break;
	case HASH:
		if (!is_hash(s))
			return -1;
		break;
	case KEY:
		if (dl_key_parse(key, s, strlen(s), NULL))
			return -1;
		break;
	case LINK:
		if (dl_offer_link(&link, s, NULL))
			return -1;
		break;
	case TEXT:
		break;
	case LOSS:
		return dl_parse_double(s, -HUGE_VAL, HUGE_VAL, at);
	case SCALE:
		return dl_parse_double(s, 0, 1, at) || *(double *)at == 0 ? -1
									  : 0;
	case ROLE:
	case TAKEN:
	case REFUSAL:
	case BYE:
		return find_enum(form, s, at);
	}
	*(const char **)at = s;
	return 0;
}

static int may_be_absent(enum form form)
{
	return form == LOSS || form == START || form == CODEC ||
	       form == CALLED || form == SLOT || form == EXTRA || form == KEY ||
	       form == LINK;
}

static int unpack_field(struct dl_message *m, const struct dl_field *f,
	const struct dl_header *h, struct dl_err *e)
{
	const struct dl_string *s = dl_header_meta(h, f->key);

	if (!s && may_be_absent(f->form))
		return 0;
	if (!s)
		return dl_fail(e, DL_PROTOCOL, "%s is missing", f->key);
	if (memchr(s->s, 0, s->n) ||
		unpack_value(s->s, f->form, (char *)m + f->at)) {
		char shown[64];

		return dl_fail(e, DL_PROTOCOL, "%s is \"%s\"", f->key,
			dl_scrub(shown, sizeof(shown), s->s, s->n));
	}
	return 0;
}

/* What fields mean together. */
static int check_fields(const struct dl_message *m, struct dl_err *e)
{
	if (m->kind == DL_MSG_TAKEN && (m->taken == DL_TAKEN_REFUSED) !=
					       (m->refusal != DL_REFUSED_NOT))
		return dl_fail(e, DL_PROTOCOL,
			"dl.refusal is \"%s\" though dl.taken is \"%s\"",
			dl_refusal_name(m->refusal), dl_taken_name(m->taken));
	if (m->codec && !*m->codec)
		return dl_fail(e, DL_PROTOCOL, "dl.codec is \"\"");
	if (m->hash && !*m->hash)
		return dl_fail(e, DL_PROTOCOL, "dl.hash is \"\"");
	if (m->kind == DL_MSG_GUEST && !m->key)
		return dl_fail(e, DL_PROTOCOL, "dl.key is missing");
	return 0;
}

/* The tensor of a part or of figures, which nobody's layout knows. */
static int check_bytes(const struct dl_header *h, struct dl_err *e)
{
	const struct dl_tensor *t = h->tensor;

	if (h->tensors != 1 || t->dtype != DL_U8 || t->rank != 1 ||
		strcmp(t->name.s, "data") != 0 || t->name.n != strlen("data"))
		return dl_fail(
			e, DL_PROTOCOL, "its tensor is not \"data\", U8 [n]");
	return 0;
}

/* P as a hello says it: by its list of versions, which may be absent. */
static int count_fragments(
	struct dl_message *m, const struct dl_header *h, struct dl_err *e)
{
	const struct dl_tensor *t;

	if (!dl_message_may_have_versions(m->kind) || h->tensors == 0)
		return 0;
	t = dl_header_find(h, "versions", strlen("versions"));
	if (!t || t->rank != 2 || t->shape[0] == 0 || t->shape[0] >= UINT32_MAX)
		return dl_fail(e, DL_PROTOCOL,
			"tensor \"versions\" is missing or not [P, 2]");
	m->fragments = (uint32_t)t->shape[0];
	return 0;
}

static int check_list(const struct dl_message *m, const struct dl_list *l,
	const struct dl_tensor *t, struct dl_err *e)
{
	if (!t)
		return dl_fail(
			e, DL_PROTOCOL, "tensor \"%s\" is missing", l->name);
	if (t->dtype != l->dtype || t->rank != l->rank ||
		(l->dtype == DL_U64 && t->shape[0] != m->fragments) ||
		(l->rank == 2 && t->shape[1] != 2))
		return dl_fail(e, DL_PROTOCOL,
			"tensor \"%s\" has another dtype or shape", l->name);
	return 0;
}

/* Copies the lists: what came may lie at odd addresses. The memory is at most
 * a few bytes more than the data. */
static int unpack_lists(struct dl_message *m, const struct dl_header *h,
	const unsigned char *data, struct dl_err *e)
{
	unsigned has = dl_message_lists(m), want = 0;
	const struct dl_tensor *t[LISTS] = {NULL};
	uint64_t *number;
	size_t i, k;

	for (i = 0; i < LISTS; i++) {
		if (!(has & 1u << i))
			continue;
		want++;
		t[i] = dl_header_find(
			h, dl_lists[i].name, strlen(dl_lists[i].name));
		if (check_list(m, &dl_lists[i], t[i], e))
			return e->code;
	}
	if (h->tensors != want)
		return dl_fail(e, DL_PROTOCOL, "has tensors it should not");
	if (!has)
		return 0;
	if (!data)
		return dl_fail(e, DL_PROTOCOL, "comes without its data");
	m->memory = number = dl_alloc(h->data_size + 1);
	for (i = 0; i < LAYOUT; i++) {
		if (!t[i])
			continue;
		if (i == SEQS)
			m->seqs = number;
		else if (i == ORIGINS)
			m->origins = (const struct dl_version *)number;
		else
			m->versions = (const struct dl_version *)number;
		for (k = 0; k < t[i]->elements; k++)
			*number++ = dl_le64(data + t[i]->offset + 8 * k);
	}
	if (t[LAYOUT]) {
		m->text = (char *)number;
		m->text_n = t[LAYOUT]->elements;
		memcpy(number, data + t[LAYOUT]->offset, m->text_n);
	}
	return 0;
}

static int unpack_kind(
	struct dl_message *m, const struct dl_header *h, struct dl_err *e)
{
	const struct dl_string *format = dl_header_meta(h, "dl.format");
	const struct dl_string *kind = dl_header_meta(h, "dl.kind");
	char shown[64];
	int i;

	if (!format || strcmp(format->s, "1") != 0)
		return dl_fail(
			e, DL_PROTOCOL, "message without dl.format \"1\"");
	if (!kind)
		return dl_fail(e, DL_PROTOCOL, "message without dl.kind");
	for (i = 0; i < DL_MSG_KINDS; i++)
		if (strlen(dl_kinds[i].name) == kind->n &&
			memcmp(dl_kinds[i].name, kind->s, kind->n) == 0) {
			m->kind = i;
			return 0;
		}
	return dl_fail(e, DL_PROTOCOL, "unknown message \"%s\"",
		dl_scrub(shown, sizeof(shown), kind->s, kind->n));
}

static int unpack_rest(struct dl_message *m, const struct dl_header *h,
	const void *data, struct dl_err *e)
{
	int i, code = 0;

	for (i = 0; i < FIELDS && !code; i++)
		if (dl_kinds[m->kind].has & HAS(i))
			code = unpack_field(m, &dl_fields[i], h, e);
	if (!code)
		code = check_fields(m, e);
	if (!code && (m->kind == DL_MSG_PART || m->kind == DL_MSG_FIGURES))
		code = check_bytes(h, e);
	if (code || dl_message_has_data(m->kind))
		return code;
	code = count_fragments(m, h, e);
	return code ? code : unpack_lists(m, h, data, e);
}

int dl_message_unpack(struct dl_message *m, const struct dl_header *h,
	const void *data, struct dl_err *e)
{
	*m = (struct dl_message){
		.scale = 1, .loss = NAN, .global = "f32", .slot = DL_SLOT_NONE};
	if (unpack_kind(m, h, e))
		return DL_PROTOCOL;
	if (unpack_rest(m, h, data, e)) {
		dl_message_release(m);
		return dl_at(e, "%s", dl_kinds[m->kind].name);
	}
	if ((m->kind == DL_MSG_ERROR || m->kind == DL_MSG_PEERS))
		m->text_n = strlen(m->text);
	return 0;
}

void dl_message_release(struct dl_message *m)
{
	free(m->memory);
	m->memory = NULL;
}
