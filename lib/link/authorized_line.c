#include "link/authorized_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "link/key.h"

static int bad(struct dl_err *e, const char *what, const char *word)
{
	char shown[80];

	return dl_fail(e, DL_DATA, "%s: \"%s\"", what,
		dl_scrub(shown, sizeof shown, word, strlen(word)));
}

static int take_key(struct dl_authorized *a, const char *word, struct dl_err *e)
{
	if (dl_key_parse(a->key, word, strlen(word), e))
		return dl_fail(e, DL_DATA,
			"the first word is no public key in base64");
	return 0;
}

static int take_name(
	struct dl_authorized *a, const char *word, struct dl_err *e)
{
	if (!word)
		return dl_fail(e, DL_DATA, "a key without a name");
	if (!dl_name_ok(word, strlen(word)))
		return bad(e, "not a good name", word);
	strcpy(a->name, word);
	return 0;
}

static int take_max(struct dl_authorized *a, char *value, struct dl_err *e)
{
	uint64_t max;

	if (dl_parse_u64(value, 1, DL_AUTHORIZED_GROUP, &max))
		return bad(e, "max is not 1 to 10000", value);
	a->max = (uint32_t)max;
	return 0;
}

static int take_rate(struct dl_authorized *a, char *value, struct dl_err *e)
{
	if (dl_parse_rate(value, &a->rate))
		return bad(e, "rate is not bytes a second", value);
	return 0;
}

/* "3" or "3-5", which begins after the range before it. */
static int take_range(struct dl_authorized *a, char *word)
{
	struct dl_range *r = &a->range[a->ranges];
	char *dash = strchr(word, '-');
	uint64_t first, last;

	if (dash)
		*dash = '\0';
	if (dl_parse_u64(word, 0, UINT32_MAX - 1, &first) ||
		dl_parse_u64(
			dash ? dash + 1 : word, first, UINT32_MAX - 1, &last) ||
		(a->ranges && first <= r[-1].last))
		return -1;
	*r = (struct dl_range){(uint32_t)first, (uint32_t)last};
	a->ranges++;
	return 0;
}

static int take_fragments(
	struct dl_authorized *a, char *value, struct dl_err *e)
{
	size_t most = 1;
	char *next;

	for (char *s = value; *s; s++)
		most += *s == ',';
	a->range = dl_alloc_array(most, sizeof *a->range);
	for (char *word = value; word; word = next) {
		next = strchr(word, ',');
		if (next)
			*next++ = '\0';
		if (take_range(a, word))
			return dl_fail(e, DL_DATA,
				"fragments are not rising numbers and ranges");
	}
	return 0;
}

/* The digits of s from at on as a number from min to max; 0 or -1. */
static int digits(
	const char *s, size_t at, size_t n, int min, int max, int *out)
{
	*out = 0;
	for (size_t i = at; i < at + n; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		*out = 10 * *out + s[i] - '0';
	}
	return *out < min || *out > max ? -1 : 0;
}

static int days_in(int year, int month)
{
	static const int days[] = {
		31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int leap = !(year % 4) && (year % 100 || !(year % 400));

	return days[month - 1] + (month == 2 && leap);
}

/* "2027-01-31", which begins at midnight, or "2027-01-31T12:00:00Z", in
 * nanoseconds since 1970; 0 or -1. */
static int parse_time(const char *s, int64_t *ns)
{
	int year, month, day, hour = 0, minute = 0, second = 0;
	int64_t days = 0;
	size_t n = strlen(s);

	if ((n != 10 && n != 20) || s[4] != '-' || s[7] != '-' ||
		digits(s, 0, 4, 1970, 2200, &year) ||
		digits(s, 5, 2, 1, 12, &month) ||
		digits(s, 8, 2, 1, days_in(year, month), &day))
		return -1;
	if (n == 20 && (s[10] != 'T' || s[13] != ':' || s[16] != ':' ||
			       s[19] != 'Z' || digits(s, 11, 2, 0, 23, &hour) ||
			       digits(s, 14, 2, 0, 59, &minute) ||
			       digits(s, 17, 2, 0, 59, &second)))
		return -1;
	for (int y = 1970; y < year; y++)
		days += 337 + days_in(y, 2);
	for (int m = 1; m < month; m++)
		days += days_in(year, m);
	days += day - 1;
	*ns = (((days * 24 + hour) * 60 + minute) * 60 + second) * DL_SECOND;
	return 0;
}

static int take_expires(struct dl_authorized *a, char *value, struct dl_err *e)
{
	if (parse_time(value, &a->expires))
		return bad(e, "expires is not YYYY-MM-DD[THH:MM:SSZ]", value);
	return 0;
}

static int take_observer(struct dl_authorized *a, char *value, struct dl_err *e)
{
	(void)value;
	(void)e;
	a->observer = 1;
	return 0;
}

static int take_end(struct dl_authorized *a, char *value, struct dl_err *e)
{
	(void)value;
	(void)e;
	a->end = 1;
	return 0;
}

/* Those that end in "=" have a value. */
static const struct option {
	const char *name;
	int (*take)(struct dl_authorized *a, char *value, struct dl_err *e);
} options[] = {
	{"max=", take_max},
	{"fragments=", take_fragments},
	{"rate=", take_rate},
	{"observer", take_observer},
	{"end", take_end},
	{"expires=", take_expires},
};
enum { OPTIONS = sizeof options / sizeof *options };

static int take_option(
	struct dl_authorized *a, unsigned *seen, char *word, struct dl_err *e)
{
	for (int i = 0; i < OPTIONS; i++) {
		size_t n = strlen(options[i].name);
		int valued = options[i].name[n - 1] == '=';

		if (strncmp(word, options[i].name, n) != 0 ||
			(!valued && word[n]))
			continue;
		if (*seen & 1u << i)
			return bad(e, "an option twice", word);
		*seen |= 1u << i;
		return options[i].take(a, word + n, e);
	}
	return bad(e, "no such option", word);
}

/* What options mean together. */
static int check(const struct dl_authorized *a, struct dl_err *e)
{
	char last[16];
	int n = snprintf(last, sizeof last, ".%u", a->max ? a->max - 1 : 0);

	if (a->observer && (a->max || a->ranges))
		return dl_fail(e, DL_DATA,
			"an observer is no group and pushes no fragments");
	if (a->max && strlen(a->name) + (size_t)n > DL_NAME_MAX)
		return dl_fail(e, DL_DATA, "%s%s is longer than %d bytes",
			a->name, last, DL_NAME_MAX);
	return 0;
}

/* The next word at *at, or NULL: at the end, or where a comment begins. */
static char *next_word(char **at)
{
	char *word = *at + strspn(*at, " \t");

	if (!*word || *word == '#')
		return NULL;
	*at = word + strcspn(word, " \t");
	if (**at)
		*(*at)++ = '\0';
	return word;
}

static int take_words(struct dl_authorized *a, char *at, struct dl_err *e)
{
	char *word = next_word(&at);
	unsigned seen = 0;
	int code;

	if (!word)
		return 0;
	code = take_key(a, word, e);
	if (!code)
		code = take_name(a, next_word(&at), e);
	while (!code && (word = next_word(&at)))
		code = take_option(a, &seen, word, e);
	return code ? code : check(a, e);
}

int dl_authorized_line(struct dl_authorized *a, char *line, struct dl_err *e)
{
	int code;

	*a = (struct dl_authorized){.expires = INT64_MAX};
	code = take_words(a, line, e);
	if (code)
		free(a->range);
	return code;
}
