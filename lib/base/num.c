#include "base/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int dl_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (!*s)
		return -1;
	for (; *s; s++) {
		unsigned digit = (unsigned)*s - '0';

		if (digit > 9 || v > (UINT64_MAX - digit) / 10)
			return -1;
		v = v * 10 + digit;
	}
	if (v < min || v > max)
		return -1;
	*out = v;
	return 0;
}

/* A plain decimal number at the start of s; strtod alone would take more. */
static int parse_front(const char *s, double *out, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*s) && *s != '-' && *s != '.')
		return -1;
	if (s[strspn(s, "-")] == '0' && tolower((unsigned char)s[1]) == 'x')
		return -1;
	errno = 0;
	*out = strtod(s, &end);
	if (end == s || errno || !isfinite(*out))
		return -1;
	*rest = end;
	return 0;
}

int dl_parse_double(const char *s, double min, double max, double *out)
{
	const char *rest;
	double v;

	if (parse_front(s, &v, &rest) || *rest || !(v >= min && v <= max))
		return -1;
	*out = v;
	return 0;
}

int dl_parse_size(const char *s, uint64_t *out)
{
	static const char units[] = "KMGTP";
	const char *rest, *unit;
	double v, scale = 1;

	if (parse_front(s, &v, &rest) || v < 0)
		return -1;
	if (*rest) {
		unit = strchr(units, toupper((unsigned char)*rest));
		if (!unit)
			return -1;
		rest++;
		scale = pow(*rest == 'i' ? 1024 : 1000, (double)(unit - units + 1));
		rest += *rest == 'i';
		rest += *rest == 'B';
	}
	if (*rest || v * scale >= 0x1p63)
		return -1;
	*out = (uint64_t)(v * scale);
	return 0;
}

int dl_parse_rate(const char *s, uint64_t *out)
{
	size_t n = strlen(s);
	char size[32];
	int bits = n > 3 && strcmp(s + n - 3, "bit") == 0;

	n -= bits ? 3 : 0;
	if (n >= sizeof size)
		return -1;
	memcpy(size, s, n);
	size[n] = '\0';
	if (dl_parse_size(size, out))
		return -1;
	*out /= bits ? 8 : 1;
	return *out ? 0 : -1;
}

/* The unit at s, when it is shorter than *unit, which then is it: how many
 * letters it has, else 0. */
static size_t take_unit(const char *s, double *unit)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"d", 86400e9}, {"h", 3600e9}, {"m", 60e9}, {"s", 1e9},
		{"ms", 1e6}, {"us", 1e3}};
	size_t n = strspn(s, "dhmsu");

	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		if (strlen(units[i].name) != n || strncmp(s, units[i].name, n))
			continue;
		if (units[i].ns >= *unit)
			return 0;
		*unit = units[i].ns;
		return n;
	}
	return 0;
}

int dl_parse_duration(const char *s, int64_t *out)
{
	double v, sum = 0, unit = HUGE_VAL;
	const char *rest;
	size_t n;

	do {
		int first = unit == HUGE_VAL;

		if (parse_front(s, &v, &rest) || v < 0)
			return -1;
		n = take_unit(rest, &unit);
		if (!n && (*rest || !first))
			return -1;
		sum += v * (n ? unit : 1e9);
		s = rest + n;
	} while (*s);
	/* Half of what fits, so that now and a duration can be added. */
	if (sum >= 0x1p62)
		return -1;
	*out = (int64_t)sum;
	return 0;
}

static int64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * DL_SECOND + t.tv_nsec;
}

int64_t dl_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t dl_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

char *dl_human_size(char out[DL_HUMAN], uint64_t bytes)
{
	static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
	double v = (double)bytes;
	size_t u = 0;

	while (v >= 999.5 && u + 1 < sizeof units / sizeof *units) {
		v /= 1000;
		u++;
	}
	snprintf(out, DL_HUMAN, u && v < 9.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
	return out;
}

char *dl_human_duration(char out[DL_HUMAN], int64_t ns)
{
	long long s = ns / DL_SECOND;

	if (ns < DL_SECOND)
		snprintf(out, DL_HUMAN, "%lldms", (long long)(ns / 1000000));
	else if (s < 60)
		snprintf(out, DL_HUMAN, "%.1fs", (double)ns / 1e9);
	else if (s < 3600)
		snprintf(out, DL_HUMAN, "%lldm%02llds", s / 60, s % 60);
	else
		snprintf(out, DL_HUMAN, "%lldh%02lldm", s / 3600, s / 60 % 60);
	return out;
}
