/*
 * Any text as a number, a size and a duration: refused, or within its bounds
 * and the same when it is written in digits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "fuzz.h"

static void check_u64(const char *s)
{
	uint64_t v, again;
	char text[32];

	if (dl_parse_u64(s, 3, UINT64_MAX - 3, &v))
		return;
	if (v < 3 || v > UINT64_MAX - 3)
		abort();
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	if (dl_parse_u64(text, 0, UINT64_MAX, &again) || again != v)
		abort();
}

static void check_double(const char *s)
{
	char text[32];
	double v, again;

	if (dl_parse_double(s, -1e300, 1e300, &v))
		return;
	if (!(fabs(v) <= 1e300))
		abort();
	snprintf(text, sizeof(text), "%.17g", v);
	if (dl_parse_double(text, -HUGE_VAL, HUGE_VAL, &again) || again != v)
		abort();
}

/* Exact below 2^53, where every double is. */
static void check_size(const char *s)
{
	char text[32], shown[DL_HUMAN];
	uint64_t v, again;

	if (dl_parse_size(s, &v))
		return;
	if (v >> 63 || strlen(dl_human_size(shown, v)) >= sizeof(shown) - 1)
		abort();
	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	if (dl_parse_size(text, &again) || (again != v && v >> 53 == 0))
		abort();
}

static void check_duration(const char *s)
{
	char text[32], shown[DL_HUMAN];
	int64_t ns, again;

	if (dl_parse_duration(s, &ns))
		return;
	if (ns < 0 || ns >> 62 ||
		strlen(dl_human_duration(shown, ns)) >= sizeof(shown) - 1)
		abort();
	snprintf(text, sizeof(text), "%lldus", (long long)(ns / 1000));
	if (dl_parse_duration(text, &again) ||
		(again != ns / 1000 * 1000 && ns >> 53 == 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *s = dl_strndup((const char *)data, n);

	check_u64(s);
	check_double(s);
	check_size(s);
	check_duration(s);
	free(s);
	return 0;
}
