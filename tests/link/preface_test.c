/* The clear lines of a session: what is said, chosen and refused. */
#include <stdlib.h>
#include <string.h>

#include "link/preface.h"
#include "tests/tap.h"

static void test_lines(void)
{
	static const char line[] = "dl-tools 1 ChaChaPoly x\nmore";
	size_t n = sizeof "dl-tools 1 ChaChaPoly x\n" - 1, used, wrong = 0;
	char *longest = malloc(DL_PREFACE_LINE);

	for (size_t i = 0; i < n; i++)
		wrong += dl_preface_line(line, i, &used, NULL) || used;
	ok(wrong == 0, "every prefix is incomplete");
	ok(!dl_preface_line(line, sizeof line - 1, &used, NULL) && used == n,
		"what follows is left alone");
	memset(longest, 'x', DL_PREFACE_LINE);
	ok(!dl_preface_line(longest, DL_PREFACE_LINE - 1, &used, NULL) && !used,
		"254 bytes may yet be a line");
	ok(dl_preface_line(longest, DL_PREFACE_LINE, &used, NULL) ==
			DL_PROTOCOL,
		"255 without an end are none");
	longest[DL_PREFACE_LINE - 1] = '\n';
	ok(!dl_preface_line(longest, DL_PREFACE_LINE, &used, NULL) &&
			used == DL_PREFACE_LINE,
		"with one they are");
	free(longest);
	ok(dl_preface_line("dl\0", 3, &used, NULL) == DL_PROTOCOL &&
			dl_preface_line("\r\n", 2, &used, NULL) ==
				DL_PROTOCOL &&
			dl_preface_line("\x7f", 1, &used, NULL) ==
				DL_PROTOCOL &&
			dl_preface_line("\xc3\xa4", 2, &used, NULL) ==
				DL_PROTOCOL,
		"controls and bytes above ASCII are refused at once");
}

/* What the responder of run "demo" answers to a line. */
static const char *answer(const char *line)
{
	static char out[DL_PREFACE_LINE + 1];
	struct dl_err e;
	enum dl_suite suite = DL_SUITES;
	size_t n = 0;
	int rc = dl_preface_answer(
		out, &n, &suite, line, strlen(line), "demo", &e);

	out[n] = '\0';
	return (!rc && suite < DL_SUITES) == !strncmp(out, "dl-tools ", 9)
		       ? out
		       : "answer and verdict differ";
}

static void test_answer(const char *line, const char *want)
{
	const char *got = answer(line);

	ok(!strcmp(got, want), "%.*s", (int)strcspn(line, "\n"), line);
	if (strcmp(got, want))
		printf("# got %s", got);
}

static void test_answers(void)
{
	static const char
		chosen[] = "dl-tools 1 ChaChaPoly\n",
		stranger[] = "error 76 sessions of dl-tools only, by KEY@\n",
		version[] = "error 76 no version in common: 1 is "
			    "spoken here\n",
		suite[] = "error 76 no suite in common\n";
	static const char *const bad[] = {"", "\n", "dl-tools\n",
		"dl-tools 1\n", "dl-tools 1 ChaChaPoly\n",
		"dl-tools 1 ChaChaPoly \n", "dl-tools 1 ChaChaPoly demo",
		"dl-tools 1 ChaChaPoly demo \n",
		"dl-tools 1 ChaChaPoly demo x\n",
		"dl-tools  1 ChaChaPoly demo\n",
		" dl-tools 1 ChaChaPoly demo\n", "DL-tools 1 ChaChaPoly demo\n",
		"dl-tools  ChaChaPoly demo\n", "dl-tools 1,, ChaChaPoly demo\n",
		"dl-tools 1, ChaChaPoly demo\n",
		"dl-tools ,1 ChaChaPoly demo\n",
		"dl-tools 1 ChaChaPoly, demo\n",
		"dl-tools 1 ChaCha-Poly demo\n",
		"dl-tools 1 ChaChaPoly .demo\n",
		"dl-tools 1 ChaChaPoly ../demo\n", "GET / HTTP/1.1\n",
		"SSH-2.0-OpenSSH_9.2\n"};

	test_answer("dl-tools 1 ChaChaPoly demo\n", chosen);
	test_answer("dl-tools 1 ChaChaPoly -\n", chosen);
	test_answer("dl-tools 3,2,1 Kyber,ChaChaPoly demo\n", chosen);
	test_answer("dl-tools 1 ChaChaPoly,AESGCM demo\n", chosen);
	test_answer("dl-tools 2,3 ChaChaPoly demo\n", version);
	test_answer("dl-tools 01 ChaChaPoly demo\n", version);
	test_answer("dl-tools 11 ChaChaPoly demo\n", version);
	test_answer("dl-tools 1 chachapoly demo\n", suite);
	test_answer("dl-tools 1 ChaChaPol,ChaChaPolyy demo\n", suite);
	test_answer("dl-tools 1 ChaChaPoly other\n",
		"error 65 no run other here\n");
	test_answer(
		"dl-tools 1 ChaChaPoly dem\n", "error 65 no run dem here\n");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		test_answer(bad[i], stranger);
	test_answer("dl-tools 1 AESGCM,ChaChaPoly demo\n",
		dl_suite_available(DL_SUITE_AESGCM) ? "dl-tools 1 AESGCM\n"
						    : chosen);
}

static int accepted(const char *line, enum dl_suite *suite, struct dl_err *e)
{
	return dl_preface_accept(suite, line, strlen(line), e);
}

static void test_accept(void)
{
	static const char *const bad[] = {"", "\n", "dl-tools 1 ChaChaPoly",
		"dl-tools 2 ChaChaPoly\n", "dl-tools 1,1 ChaChaPoly\n",
		"dl-tools 1 ChaChaPoly,AESGCM\n", "dl-tools 1 ChaChaPoly x\n",
		"dl-tools 1 ChaChaPoly \n", "dl-tools 1 Other\n",
		"dl-tools 1 \n", "dl-tools 1\n", "error\n", "error \n",
		"error 65\n", "error 65 \n", "errors abound\n"};
	enum dl_suite suite = DL_SUITES;
	struct dl_err e = {0};
	size_t taken = 0;

	ok(!accepted("dl-tools 1 ChaChaPoly\n", &suite, &e) &&
			suite == DL_SUITE_CHACHAPOLY,
		"the choice is read");
	ok(accepted("dl-tools 1 AESGCM\n", &suite, &e) ==
			(dl_suite_available(DL_SUITE_AESGCM) ? 0 : DL_PROTOCOL),
		"one that was not offered is refused");
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (accepted(bad[i], &suite, &e) != DL_PROTOCOL) {
			printf("# taken: %s", bad[i]);
			taken++;
		}
	ok(taken == 0, "what is no answer is refused: %s", e.text);
	ok(accepted("error 65 no run x here\n", &suite, &e) == DL_DATA &&
			strstr(e.text, ": no run x here"),
		"a refusal is told: %s", e.text);
	ok(accepted("error 75 later\n", &suite, &e) == DL_TEMPFAIL &&
			accepted("error 77 no\n", &suite, &e) == DL_NOPERM &&
			accepted("error 0 no\n", &suite, &e) == DL_PROTOCOL &&
			accepted("error 9 no\n", &suite, &e) == DL_PROTOCOL,
		"with the codes that refusals have");
	ok(!dl_preface_refused("dl-tools 1 ChaChaPoly\n", 22, &e),
		"a choice refuses nothing");
}

static void test_refuse(void)
{
	char out[DL_PREFACE_LINE], text[2 * DL_PREFACE_LINE];
	size_t used;

	static const char want[] = "error 75 a?b?\n";

	ok(dl_preface_refuse(out, DL_TEMPFAIL, "a\nb\xff") == sizeof want - 1 &&
			!memcmp(out, want, sizeof want - 1),
		"controls stay out of a refusal");
	memset(text, 'y', sizeof text);
	text[sizeof text - 1] = '\0';
	ok(dl_preface_refuse(out, DL_PROTOCOL, text) == sizeof out &&
			!dl_preface_line(out, sizeof out, &used, NULL) &&
			used == sizeof out,
		"a long one is cut to a line");
}

static void test_both(void)
{
	char asked[DL_PREFACE_LINE], told[DL_PREFACE_LINE], run[64];
	enum dl_suite a = DL_SUITES, b = DL_SUITES;
	size_t n, m = 1, used;

	memset(run, 'r', sizeof run - 1);
	run[sizeof run - 1] = '\0';
	n = dl_preface_ask(asked, run);
	ok(!dl_preface_line(asked, n, &used, NULL) && used == n &&
			!dl_preface_answer(told, &m, &a, asked, n, run, NULL) &&
			!dl_preface_accept(&b, told, m, NULL) && a == b,
		"both agree: %.*s", (int)m - 1, told);
	n = dl_preface_ask(asked, NULL);
	ok(!dl_preface_answer(told, &m, &a, asked, n, "demo", NULL),
		"any run: %.*s", (int)n - 1, asked);
}

int main(void)
{
	if (sodium_init() < 0)
		return 99;
	test_lines();
	test_answers();
	test_accept();
	test_refuse();
	test_both();
	return done_testing();
}
