/* Names of the files of a spool. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "link/spool_text.h"

char *dl_spool_push_name(char out[DL_SPOOL_NAME], const struct dl_spool_push *v)
{
	snprintf(out, DL_SPOOL_NAME, "%" PRIu64 ".%" PRIu32 ".%" PRIu64 ".%s",
		v->step, v->fragment, v->seq, v->hash);
	return out;
}

/* A number of one spelling that a dot follows. */
static int take_part(const char **s, uint64_t *out)
{
	return dl_spool_take_number(s, out) || *(*s)++ != '.' ? -1 : 0;
}

int dl_spool_push_parse(struct dl_spool_push *v, const char *s)
{
	uint64_t fragment;

	if (take_part(&s, &v->step) || take_part(&s, &fragment) ||
		take_part(&s, &v->seq) || !v->seq ||
		fragment >= DL_SPOOL_FRAGMENTS_MAX ||
		!dl_spool_is_hash(s, strlen(s)))
		return -1;
	v->fragment = (uint32_t)fragment;
	memcpy(v->hash, s, DL_HASH_HEX);
	return 0;
}

char *dl_spool_open_name(
	char out[DL_SPOOL_NAME], uint64_t step, uint32_t fragment)
{
	snprintf(out, DL_SPOOL_NAME, "%" PRIu64 ".%" PRIu32, step, fragment);
	return out;
}

int dl_spool_open_name_parse(const char *s, uint64_t *step, uint32_t *fragment)
{
	uint64_t p;

	if (take_part(&s, step) || dl_spool_take_number(&s, &p) || *s ||
		p >= DL_SPOOL_FRAGMENTS_MAX)
		return -1;
	*fragment = (uint32_t)p;
	return 0;
}

char *dl_spool_version_name(
	char out[DL_SPOOL_NAME], uint32_t p, struct dl_version v)
{
	snprintf(out, DL_SPOOL_NAME, "%" PRIu32 ".%" PRIu64 ".%" PRIu64, p,
		v.epoch, v.number);
	return out;
}

int dl_spool_version_parse(const char *s, uint32_t *p, struct dl_version *v)
{
	uint64_t fragment;

	if (take_part(&s, &fragment) || dl_spool_take_version(&s, v) || *s ||
		fragment >= DL_SPOOL_FRAGMENTS_MAX)
		return -1;
	*p = (uint32_t)fragment;
	return 0;
}
