/*
 * Any text as authorized_learners: refused with 65 and a text, or a list in
 * which each key and name is one's alone, and whose lines, written again, allow
 * the same.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/num.h"
#include "fuzz.h"
#include "link/authorized.h"
#include "link/key.h"

static void write_expiry(struct dl_buf *out, int64_t ns)
{
	time_t t = (time_t)(ns / DL_SECOND);
	char text[32];
	struct tm tm;

	if (!gmtime_r(&t, &tm) ||
		!strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		abort();
	dl_buf_printf(out, " expires=%s", text);
}

static void write_line(struct dl_buf *out, const struct dl_authorized *a)
{
	char key[DL_KEY_TEXT + 1];

	dl_buf_printf(out, "%s %s", dl_key_print(key, a->key), a->name);
	if (a->max)
		dl_buf_printf(out, " max=%u", a->max);
	if (a->rate)
		dl_buf_printf(out, " rate=%llu", (unsigned long long)a->rate);
	if (a->observer)
		dl_buf_str(out, " observer");
	if (a->end)
		dl_buf_str(out, " end");
	if (a->expires != INT64_MAX)
		write_expiry(out, a->expires);
	for (size_t i = 0; i < a->ranges; i++)
		dl_buf_printf(out, "%s%u-%u",
			i ? "," : " fragments=", a->range[i].first,
			a->range[i].last);
	dl_buf_byte(out, '\n');
}

/* Names are claimed by their own line and by no other. */
static void check_claims(
	const struct dl_authorized_list *l, const struct dl_authorized *a)
{
	char name[DL_NAME_MAX + 1];
	uint32_t last = a->max ? a->max - 1 : 0, slot;

	for (size_t i = 0; i < l->entries; i++)
		if ((dl_authorized_claim(&l->entry[i], a->name, &slot) !=
			    DL_CLAIM_NOT) != (&l->entry[i] == a))
			abort();
	if (a->max &&
		(dl_authorized_claim(a, dl_authorized_member(name, a, last),
			 &slot) != DL_CLAIM_MEMBER ||
			slot != last))
		abort();
}

static void check_pushes(const struct dl_authorized *a)
{
	if (a->observer && dl_authorized_may_push(a, 0))
		abort();
	for (size_t i = 0; i < a->ranges; i++)
		if (!dl_authorized_may_push(a, a->range[i].first) ||
			!dl_authorized_may_push(a, a->range[i].last) ||
			(i && a->range[i].first <= a->range[i - 1].last))
			abort();
}

static void check_spelling(const struct dl_authorized_list *l)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_authorized_list again;

	for (size_t i = 0; i < l->entries; i++)
		write_line(&text, &l->entry[i]);
	if (dl_authorized_parse(
		    &again, (char *)text.data, text.len, "again", NULL) ||
		again.entries != l->entries)
		abort();
	for (size_t i = 0; i < l->entries; i++)
		if (!dl_authorized_same(&l->entry[i], &again.entry[i]))
			abort();
	dl_authorized_release(&again);
	dl_buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_authorized_list l;
	struct dl_err e = {0};
	int code = dl_authorized_parse(
		&l, (const char *)data, n, "authorized", &e);

	if (code && (code != DL_DATA || e.code != DL_DATA || !e.text[0]))
		abort();
	for (size_t i = 0; !code && i < l.entries; i++) {
		if (dl_authorized_find(&l, l.entry[i].key) != &l.entry[i])
			abort();
		check_claims(&l, &l.entry[i]);
		check_pushes(&l.entry[i]);
	}
	if (!code)
		check_spelling(&l);
	dl_authorized_release(&l);
	return 0;
}
