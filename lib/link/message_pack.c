#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "link/fields.h"
#include "tensor/coded.h"

static void pack_double(struct dl_writer *w, const char *key, double v)
{
	char text[32];

	if (!isfinite(v))
		return;
	snprintf(text, sizeof(text), "%.17g", v);
	dl_writer_meta(w, key, text);
}

static void pack_field(
	struct dl_writer *w, const char *key, enum form form, const void *at)
{
	const struct dl_version *v = at;
	char text[48];
	const char *s;

	switch (form) {
	case NUMBER:
	case POSITIVE:
		dl_writer_meta_u64(w, key, *(const uint64_t *)at);
		break;
	case INDEX:
	case COUNT:
		dl_writer_meta_u64(w, key, *(const uint32_t *)at);
		break;
	case FLAG:
	case CODE:
		dl_writer_meta_u64(w, key, (uint64_t) * (const int *)at);
		break;
	case START:
		if (!v->epoch && !v->number)
			break;
		/* fall through */
	case VERSION:
		snprintf(text, sizeof(text), "%" PRIu64 ".%" PRIu64, v->epoch,
			v->number);
		dl_writer_meta(w, key, text);
		break;
	case CODEC:
		s = *(const char *const *)at;
		if (s && strcmp(s, "f32") != 0)
			dl_writer_meta(w, key, s);
		break;
	case CALLED:
	case KEY:
	case LINK:
		s = *(const char *const *)at;
		if (s && *s)
			dl_writer_meta(w, key, s);
		break;
	case SLOT:
		if (*(const uint64_t *)at != DL_SLOT_NONE)
			dl_writer_meta_u64(w, key, *(const uint64_t *)at);
		break;
	case EXTRA:
		if (*(const uint64_t *)at)
			dl_writer_meta_u64(w, key, *(const uint64_t *)at);
		break;
	case NAME:
	case HASH:
	case TEXT:
		s = *(const char *const *)at;
		dl_writer_meta(w, key, s ? s : "");
		break;
	case LOSS:
	case SCALE:
		pack_double(w, key, *(const double *)at);
		break;
	case ROLE:
	case TAKEN:
	case REFUSAL:
	case BYE:
		dl_writer_meta(
			w, key, dl_field_enum(form, *(const unsigned *)at));
		break;
	}
}

static void pack_fields(
	const struct dl_message *m, uint64_t has, struct dl_writer *w)
{
	int i;

	dl_writer_meta(w, "dl.format", "1");
	dl_writer_meta(w, "dl.kind", dl_kinds[m->kind].name);
	for (i = 0; i < FIELDS; i++)
		if (has & HAS(i))
			pack_field(w, dl_fields[i].key, dl_fields[i].form,
				(const char *)m + dl_fields[i].at);
}

void dl_message_meta(const struct dl_message *m, struct dl_writer *w)
{
	pack_fields(m, dl_kinds[m->kind].has, w);
}

void dl_message_put_data(const struct dl_message *m, const struct dl_layout *l,
	const struct dl_quant *q, struct dl_writer *w)
{
	uint64_t has = dl_kinds[m->kind].has & ~HAS(F_CODEC);

	pack_fields(m, has, w);
	if (q) {
		dl_coded_record(l, m->fragment, q, w);
	} else {
		dl_writer_meta(w, dl_fields[F_CODEC].key, "f32");
		dl_layout_record(l, m->fragment, w);
	}
}

void dl_message_pack_coded(const struct dl_message *m,
	const struct dl_layout *l, const struct dl_quant *q, struct dl_buf *out)
{
	struct dl_writer w = DL_WRITER_INIT;

	dl_message_put_data(m, l, q, &w);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
}

void dl_message_pack_data(const struct dl_message *m, const struct dl_layout *l,
	struct dl_buf *out)
{
	dl_message_pack_coded(m, l, NULL, out);
}

void dl_message_pack_part(
	const struct dl_message *m, uint64_t n, struct dl_buf *out)
{
	struct dl_writer w = DL_WRITER_INIT;

	dl_message_meta(m, &w);
	dl_writer_tensor(&w, "data", strlen("data"), DL_U8, 1, &n);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
}

static void pack_number(struct dl_buf *out, uint64_t v)
{
	unsigned char le[8];

	dl_put_le64(le, v);
	dl_buf_add(out, le, sizeof(le));
}

static void pack_list(
	const struct dl_message *m, enum list list, struct dl_buf *out)
{
	const struct dl_version *v = list == ORIGINS ? m->origins : m->versions;
	uint32_t p;

	if (list == LAYOUT) {
		dl_buf_str(out, m->text);
		return;
	}
	for (p = 0; p < m->fragments; p++) {
		if (list == SEQS) {
			pack_number(out, m->seqs[p]);
			continue;
		}
		pack_number(out, v[p].epoch);
		pack_number(out, v[p].number);
	}
}

void dl_message_pack(const struct dl_message *m, struct dl_buf *out)
{
	struct dl_writer w = DL_WRITER_INIT;
	unsigned has = dl_message_lists(m);
	uint64_t shape[2] = {m->fragments, 2};
	uint64_t bytes = has & 1 << LAYOUT ? strlen(m->text) : 0;
	int i;

	dl_message_meta(m, &w);
	for (i = 0; i < LISTS; i++)
		if (has & 1u << i)
			dl_writer_tensor(&w, dl_lists[i].name,
				strlen(dl_lists[i].name), dl_lists[i].dtype,
				dl_lists[i].rank, i == LAYOUT ? &bytes : shape);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
	for (i = 0; i < LISTS; i++)
		if (has & 1u << i)
			pack_list(m, i, out);
}
