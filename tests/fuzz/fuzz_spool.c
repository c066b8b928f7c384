/*
 * Any bytes as each text of a spool, and as the names of files in it: refused
 * with 65 and a text, or written again in one spelling.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "link/spool.h"
#include "same.h"

/* Both of one type: parse, write, parse, write; the two must agree. */
#define CROSS(type)                                                            \
	static void cross_##type(const void *text, size_t n)                   \
	{                                                                      \
		struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;         \
		struct dl_spool_##type v, again;                               \
		struct dl_err e = {0};                                         \
                                                                               \
		if (dl_spool_##type##_parse(&v, text, n, &e)) {                \
			if (e.code != DL_DATA || !e.text[0])                   \
				abort();                                       \
			return;                                                \
		}                                                              \
		dl_spool_##type##_write(&v, &once);                            \
		if (dl_spool_##type##_parse(                                   \
			    &again, once.data, once.len, NULL))                \
			abort();                                               \
		dl_spool_##type##_write(&again, &twice);                       \
		check_same(&once, &twice);                                     \
		dl_spool_##type##_release(&v);                                 \
		dl_spool_##type##_release(&again);                             \
	}

CROSS(latest)
CROSS(learner)
CROSS(taken)
CROSS(open)

/* A name that is taken is the one that is printed. */
static void cross_names(const void *text, size_t n)
{
	char *s = dl_strndup(text, n), out[DL_SPOOL_NAME];
	struct dl_spool_push push;
	struct dl_version version;
	uint64_t step;
	uint32_t p;

	if (!dl_spool_push_parse(&push, s) &&
		strcmp(dl_spool_push_name(out, &push), s) != 0)
		abort();
	if (!dl_spool_open_name_parse(s, &step, &p) &&
		strcmp(dl_spool_open_name(out, step, p), s) != 0)
		abort();
	if (!dl_spool_version_parse(s, &p, &version) &&
		strcmp(dl_spool_version_name(out, p, version), s) != 0)
		abort();
	free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = n ? (const char *)data : "";

	cross_latest(text, n);
	cross_learner(text, n);
	cross_taken(text, n);
	cross_open(text, n);
	cross_names(text, n);
	return 0;
}
