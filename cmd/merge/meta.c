#include "cmd/merge/meta.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

int meta_text(const struct dl_header *h, const char *key, const char **s,
	struct dl_err *e)
{
	const struct dl_string *v = dl_header_meta(h, key);

	*s = v ? v->s : "";
	if (v && strlen(v->s) != v->n)
		return dl_fail(e, DL_DATA, "%s holds NUL", key);
	return 0;
}

int meta_fragment(const struct dl_header *h, uint32_t *p, struct dl_err *e)
{
	const struct dl_string *v = dl_header_meta(h, "dl.fragment");
	uint64_t number;

	*p = v ? META_LOCAL : META_NO_FRAGMENT;
	if (!v || !strcmp(v->s, "local"))
		return 0;
	if (dl_header_meta_u64(h, "dl.fragment", &number, e))
		return e->code;
	if (number >= META_NO_FRAGMENT)
		return dl_fail(e, DL_DATA, "dl.fragment is too large");
	*p = (uint32_t)number;
	return 0;
}

static int parse_part(const char *s, size_t n, uint64_t *out)
{
	char digits[24];

	if (n >= sizeof digits || *s < '0' || *s > '9')
		return -1;
	memcpy(digits, s, n);
	digits[n] = 0;
	return dl_parse_u64(digits, 0, UINT64_MAX, out);
}

int meta_version(const struct dl_header *h, const char *key,
	struct dl_version *v, struct dl_err *e)
{
	const struct dl_string *s = dl_header_meta(h, key);
	const char *dot = s ? memchr(s->s, '.', s->n) : NULL;
	size_t epoch = dot ? (size_t)(dot - s->s) : 0;

	*v = (struct dl_version){0, 0};
	if (!s || (dot && !parse_part(s->s, epoch, &v->epoch) &&
			  !parse_part(dot + 1, s->n - epoch - 1, &v->number)))
		return 0;
	return dl_fail(e, DL_DATA, "%s is not a version such as 1.25", key);
}

void meta_put_version(struct dl_writer *w, const char *key, struct dl_version v)
{
	char text[48];

	snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64, v.epoch, v.number);
	dl_writer_meta(w, key, text);
}
