/*
 * Any bytes as either line of a preface: what a prefix decides, more bytes do
 * not change; each line is answered by one line, which the other end takes as
 * the same choice, or as a refusal.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "link/preface.h"

/* The line at the front, its size, or 0 when there is none. */
static size_t check_line(const char *p, size_t n)
{
	size_t used, early;
	struct dl_err e = {0};
	int code = dl_preface_line(p, n, &used, &e), early_code;

	if (code && (code != DL_PROTOCOL || !e.text[0] || used))
		abort();
	if (used > n || used > DL_PREFACE_LINE || (used && p[used - 1] != '\n'))
		abort();
	for (size_t k = 0; k < n && k <= DL_PREFACE_LINE; k++) {
		early_code = dl_preface_line(p, k, &early, NULL);
		if (early_code ? !code : early && early != used)
			abort();
	}
	return used;
}

static void check_refusal(int code, const struct dl_err *e)
{
	if (e->code != code || !e->text[0] ||
		(code != DL_DATA && code != DL_TEMPFAIL &&
			code != DL_PROTOCOL && code != DL_NOPERM))
		abort();
}

/* As what an initiator says. */
static void check_asked(const char *line, size_t n)
{
	enum dl_suite chosen = DL_SUITES, heard = DL_SUITES;
	struct dl_err e = {0}, heard_e = {0};
	char out[DL_PREFACE_LINE];
	size_t out_n;
	int code = dl_preface_answer(out, &out_n, &chosen, line, n, "demo", &e);
	int heard_code;

	if (!out_n || out_n > sizeof(out) || check_line(out, out_n) != out_n)
		abort();
	heard_code = dl_preface_accept(&heard, out, out_n, &heard_e);
	if (heard_code != code || (!code && heard != chosen))
		abort();
	if (code) {
		check_refusal(code, &e);
		check_refusal(code, &heard_e);
	} else if (!dl_suite_available(chosen)) {
		abort();
	}
}

/* As what an acceptor answers. */
static void check_answered(const char *line, size_t n)
{
	enum dl_suite suite = DL_SUITES;
	struct dl_err e = {0};
	int code = dl_preface_accept(&suite, line, n, &e);

	if (code)
		check_refusal(code, &e);
	else if (!dl_suite_available(suite) || dl_preface_refused(line, n, &e))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *p = (const char *)data;
	size_t line = check_line(p, n);

	if (line) {
		check_asked(p, line);
		check_answered(p, line);
	}
	return 0;
}
