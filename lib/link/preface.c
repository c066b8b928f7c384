#include "link/preface.h"

#include <stdio.h>
#include <string.h>

#include "sync/sync.h"

const char dl_preface_wanted[] = "sessions of dl-tools only, by KEY@";

/* Words of a line, or items of a list. */
struct word {
	const char *s;
	size_t n;
};

static int is(struct word w, const char *s)
{
	return w.n == strlen(s) && !memcmp(w.s, s, w.n);
}

/* Takes what comes before the next cut (or the end) off the front of rest. */
static struct word take(struct word *rest, char cut)
{
	const char *end = rest->n ? memchr(rest->s, cut, rest->n) : NULL;
	struct word w = {rest->s, end ? (size_t)(end - rest->s) : rest->n};
	size_t used = w.n + (end != NULL);

	rest->s += used;
	rest->n -= used;
	return w;
}

int dl_preface_line(const char *p, size_t n, size_t *used, struct dl_err *e)
{
	*used = 0;
	for (size_t i = 0; i < n && i < DL_PREFACE_LINE; i++) {
		if (p[i] == '\n') {
			*used = i + 1;
			return 0;
		}
		if (p[i] < ' ' || p[i] > '~')
			return dl_fail(e, DL_PROTOCOL, "preface: not text");
	}
	if (n >= DL_PREFACE_LINE)
		return dl_fail(e, DL_PROTOCOL, "preface: no end of the line");
	return 0;
}

size_t dl_preface_ask(char out[DL_PREFACE_LINE], const char *run)
{
	char suites[64] = "";

	for (int i = 0; i < DL_SUITES; i++)
		if (dl_suite_available((enum dl_suite)i)) {
			strcat(suites, *suites ? "," : "");
			strcat(suites, dl_suite_name((enum dl_suite)i));
		}
	return (size_t)snprintf(out, DL_PREFACE_LINE, "dl-tools %d %s %s\n",
		DL_PREFACE_VERSION, suites, run ? run : "-");
}

/* Only letters and digits, at least one. */
static int plain(struct word w)
{
	for (size_t i = 0; i < w.n; i++)
		if (!(w.s[i] >= '0' && w.s[i] <= '9') &&
			!(w.s[i] >= 'A' && w.s[i] <= 'Z') &&
			!(w.s[i] >= 'a' && w.s[i] <= 'z'))
			return 0;
	return w.n > 0;
}

/* Is this a list of plain items, whatever they mean to others? */
static int is_list(struct word list)
{
	size_t commas = 0, items = 0;

	for (size_t i = 0; i < list.n; i++)
		commas += list.s[i] == ',';
	while (list.n && plain(take(&list, ',')))
		items++;
	return items == commas + 1;
}

static int is_version(struct word w)
{
	char ours[8];

	snprintf(ours, sizeof ours, "%d", DL_PREFACE_VERSION);
	return is(w, ours);
}

static int has_version(struct word list)
{
	while (list.n)
		if (is_version(take(&list, ',')))
			return 1;
	return 0;
}

static int is_suite(struct word w, enum dl_suite *suite)
{
	for (int i = 0; i < DL_SUITES; i++)
		if (is(w, dl_suite_name((enum dl_suite)i)) &&
			dl_suite_available((enum dl_suite)i)) {
			*suite = (enum dl_suite)i;
			return 1;
		}
	return 0;
}

static int has_suite(struct word list, enum dl_suite *suite)
{
	while (list.n)
		if (is_suite(take(&list, ','), suite))
			return 1;
	return 0;
}

/* Why there is no session for that line; 0 when there is one. */
static int choose(enum dl_suite *suite, const char *line, size_t n,
	const char *here, struct dl_err *e)
{
	struct word rest = {line, n && line[n - 1] == '\n' ? n - 1 : 0},
		    magic = take(&rest, ' '), versions = take(&rest, ' '),
		    suites = take(&rest, ' '), run = rest;

	if (!is(magic, "dl-tools") || !is_list(versions) || !is_list(suites) ||
		!dl_name_ok(run.s, run.n))
		return dl_fail(e, DL_PROTOCOL, "%s", dl_preface_wanted);
	if (!has_version(versions))
		return dl_fail(e, DL_PROTOCOL,
			"no version in common: %d is spoken here",
			DL_PREFACE_VERSION);
	if (!has_suite(suites, suite))
		return dl_fail(e, DL_PROTOCOL, "no suite in common");
	if (!is(run, "-") && !is(run, here))
		return dl_fail(
			e, DL_DATA, "no run %.*s here", (int)run.n, run.s);
	return 0;
}

int dl_preface_answer(char out[DL_PREFACE_LINE], size_t *out_n,
	enum dl_suite *suite, const char *line, size_t n, const char *run,
	struct dl_err *e)
{
	struct dl_err why;
	int rc = choose(suite, line, n, run, &why);

	if (rc) {
		*out_n = dl_preface_refuse(out, rc, why.text);
		return dl_fail(e, rc, "preface: %s", why.text);
	}
	*out_n = (size_t)snprintf(out, DL_PREFACE_LINE, "dl-tools %d %s\n",
		DL_PREFACE_VERSION, dl_suite_name(*suite));
	return 0;
}

/* One that a syncer has for refusing a session. */
static int parse_code(struct word w)
{
	static const int codes[] = {DL_DATA, DL_TEMPFAIL, DL_NOPERM};
	char text[8];

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		snprintf(text, sizeof text, "%d", codes[i]);
		if (is(w, text))
			return codes[i];
	}
	return DL_PROTOCOL;
}

int dl_preface_refused(const char *line, size_t n, struct dl_err *e)
{
	struct word rest = {line, n && line[n - 1] == '\n' ? n - 1 : 0},
		    first = take(&rest, ' '), code = take(&rest, ' ');
	char said[DL_PREFACE_LINE];

	if (!is(first, "error") || !plain(code) || !rest.n)
		return 0;
	return dl_fail(e, parse_code(code), "refused, it is said: %s",
		dl_scrub(said, sizeof said, rest.s, rest.n));
}

int dl_preface_accept(
	enum dl_suite *suite, const char *line, size_t n, struct dl_err *e)
{
	struct word chosen = {line, n && line[n - 1] == '\n' ? n - 1 : 0},
		    first = take(&chosen, ' '), version = take(&chosen, ' ');
	int code = dl_preface_refused(line, n, e);

	if (code)
		return code;
	if (!is(first, "dl-tools") || !is_version(version) ||
		!is_suite(chosen, suite))
		return dl_fail(e, DL_PROTOCOL,
			"preface: no answer of a dl-tools session");
	return 0;
}

size_t dl_preface_refuse(char out[DL_PREFACE_LINE], int code, const char *text)
{
	size_t n = (size_t)snprintf(
		out, DL_PREFACE_LINE, "error %d %s", code, text);

	if (n > DL_PREFACE_LINE - 1)
		n = DL_PREFACE_LINE - 1;
	for (size_t i = 0; i < n; i++)
		if (out[i] < ' ' || out[i] > '~')
			out[i] = '?';
	out[n] = '\n';
	return n + 1;
}
