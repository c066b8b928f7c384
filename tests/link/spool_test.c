/* The texts and names of spools: there and back, and what is refused. */
#include <math.h>
#include <string.h>

#include "link/spool.h"
#include "tests/tap.h"

#define HASH "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static const char latest_text[] =
	"# dl-spool 1\n"
	"# run one\n"
	"# layout " HASH "\n"
	"# h 24\n"
	"# tau 2\n"
	"# apply carry\n"
	"# wait 0\n"
	"# global int4\n"
	"# epoch 2\n"
	"# clock 240\n"
	"# state ending\n"
	"#fragment\tversion\tstep\thash\tbytes\tbase\t"
	"update\tupdate_bytes\n"
	"0\t2.10\t240\t" HASH "\t4096\t2.9\t" HASH "\t512\n"
	"1\t2.3\t239\t" HASH "\t99\t0.0\t-\t0\n";

static const char learner_text[] = "# dl-spool 1\n"
				   "# instance 18446744073709551615\n"
				   "# clock 240\n"
				   "# steps 200\n"
				   "# tokens 51200\n"
				   "# loss 2.31\n"
				   "# state drained\n"
				   "# layout -\n"
				   "#fragment\tversion\n"
				   "0\t1.9\n"
				   "1\t0.0\n";

static const char taken_text[] = "# dl-spool 1\n"
				 "# instance 7\n"
				 "# epoch 3\n"
				 "# clock 240\n"
				 "#fragment\ttaken\tsettled\tword\treason\n"
				 "0\t5\t4\twaiting\t-\n"
				 "1\t6\t6\trefused\tnorm\n";

static const char open_text[] = "# dl-spool 1\nann\nben\n";

static int same_text(struct dl_buf *out, const char *text)
{
	int same = !strcmp(dl_buf_cstr(out), text);

	dl_buf_free(out);
	return same;
}

static void test_latest(void)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_spool_latest v;
	struct dl_err e = {0};

	ok(!dl_spool_latest_parse(
		   &v, latest_text, sizeof latest_text - 1, &e) &&
			v.fragments == 2,
		"latest is taken: %s", e.text);
	ok(!strcmp(v.run, "one") && v.h == 24 && v.tau == 2 && !v.wait &&
			!strcmp(v.apply, "carry") &&
			!strcmp(v.global, "int4") && v.epoch == 2 &&
			v.clock == 240 && v.state == DL_SPOOL_ENDING,
		"its keys");
	ok(v.fragment[0].version.number == 10 &&
			v.fragment[0].update_bytes == 512 &&
			!*v.fragment[1].update && !v.fragment[1].base.epoch &&
			v.fragment[1].bytes == 99 &&
			!strcmp(v.fragment[1].hash, HASH),
		"its rows");
	dl_spool_latest_write(&v, &out);
	ok(same_text(&out, latest_text), "and is written so");
	dl_spool_latest_release(&v);
}

static void test_learner(void)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_spool_learner v;
	struct dl_err e = {0};

	ok(!dl_spool_learner_parse(
		   &v, learner_text, sizeof learner_text - 1, &e) &&
			v.fragments == 2 && v.instance == UINT64_MAX &&
			v.steps == 200 && v.tokens == 51200 && v.loss == 2.31 &&
			v.state == DL_SPOOL_DRAINED && !*v.layout &&
			v.version[0].number == 9,
		"a learner is taken: %s", e.text);
	dl_spool_learner_write(&v, &out);
	ok(same_text(&out, learner_text), "and is written so");
	v.loss = NAN;
	dl_spool_learner_write(&v, &out);
	ok(strstr(dl_buf_cstr(&out), "# loss nan\n") != NULL, "without a loss");
	dl_buf_free(&out);
	dl_spool_learner_release(&v);
}

static void test_taken(void)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_spool_taken v;
	struct dl_err e = {0};

	ok(!dl_spool_taken_parse(&v, taken_text, sizeof taken_text - 1, &e) &&
			v.fragments == 2 && v.epoch == 3 &&
			v.fragment[0].taken == 5 &&
			v.fragment[0].settled == 4 &&
			v.fragment[0].word == DL_TAKEN_WAITING &&
			v.fragment[1].word == DL_TAKEN_REFUSED &&
			v.fragment[1].reason == DL_REFUSED_NORM,
		"answers are taken: %s", e.text);
	dl_spool_taken_write(&v, &out);
	ok(same_text(&out, taken_text), "and are written so");
	/* Each reason of the core has its word here. */
	for (int r = DL_REFUSED_FINITE; r < DL_REFUSALS; r++) {
		v.fragment[1].reason = (enum dl_refusal)r;
		dl_spool_taken_write(&v, &out);
		ok(strstr(dl_buf_cstr(&out), dl_refusal_name(r)) != NULL,
			"the reason %s", dl_refusal_name(r));
		dl_buf_free(&out);
	}
	for (int w = 0; w < DL_TAKEN_REFUSED; w++) {
		v.fragment[0].word = (enum dl_taken)w;
		dl_spool_taken_write(&v, &out);
		ok(strstr(dl_buf_cstr(&out), dl_taken_name(w)) != NULL,
			"the word %s", dl_taken_name(w));
		dl_buf_free(&out);
	}
	dl_spool_taken_release(&v);
}

static void test_open(void)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_spool_open v;
	struct dl_err e = {0};

	ok(!dl_spool_open_parse(&v, open_text, sizeof open_text - 1, &e) &&
			v.names == 2 && dl_spool_open_has(&v, "ben") &&
			!dl_spool_open_has(&v, "be"),
		"an open round is taken: %s", e.text);
	dl_spool_open_write(&v, &out);
	ok(same_text(&out, open_text), "and is written so");
	dl_spool_open_release(&v);
}

typedef int parse_fn(const char *text, size_t n, struct dl_err *e);

static int parse_latest(const char *text, size_t n, struct dl_err *e)
{
	struct dl_spool_latest v;
	int code = dl_spool_latest_parse(&v, text, n, e);

	dl_spool_latest_release(&v);
	return code;
}

static int parse_taken(const char *text, size_t n, struct dl_err *e)
{
	struct dl_spool_taken v;
	int code = dl_spool_taken_parse(&v, text, n, e);

	dl_spool_taken_release(&v);
	return code;
}

static int parse_learner(const char *text, size_t n, struct dl_err *e)
{
	struct dl_spool_learner v;
	int code = dl_spool_learner_parse(&v, text, n, e);

	dl_spool_learner_release(&v);
	return code;
}

static int parse_open(const char *text, size_t n, struct dl_err *e)
{
	struct dl_spool_open v;
	int code = dl_spool_open_parse(&v, text, n, e);

	dl_spool_open_release(&v);
	return code;
}

/* text with the first `from` as `to`. */
static char *change(const char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	if (!at)
		abort();
	return dl_sprintf(
		"%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static const struct bad {
	parse_fn *parse;
	const char *text, *from, *to, *fact;
} bad[] = {
	{parse_latest, latest_text, "spool 1", "spool 2", "line 1: not"},
	{parse_latest, latest_text, "# h 24\n", "", "h is missing"},
	{parse_latest, latest_text, "# h 24\n", "# h 24\n# h 24\n", "twice"},
	{parse_latest, latest_text, "# h 24", "# h 024", "line 4: no good"},
	{parse_latest, latest_text, "# h 24", "# h 0", "value of h"},
	{parse_latest, latest_text, "# h 24", "# h", "has no value"},
	{parse_latest, latest_text, "# h 24", "# h  24", "value of h"},
	{parse_latest, latest_text, "# h 24", "# h 24 ", "value of h"},
	{parse_latest, latest_text, "240", "18446744073709551616", "of clock"},
	{parse_latest, latest_text, "wait 0", "wait 2", "of wait"},
	{parse_latest, latest_text, "run one", "run .one", "of run"},
	{parse_latest, latest_text, "ending", "endings", "of state"},
	{parse_latest, latest_text, "layout 00", "layout 0g", "of layout"},
	{parse_latest, latest_text, "layout 00", "layout 000", "of layout"},
	{parse_latest, latest_text, "carry", "car\try", "of apply"},
	{parse_latest, latest_text, "\tbase", "", "columns"},
	{parse_latest, latest_text, "#fragment", "# fragment", "columns"},
	{parse_latest, latest_text, "\n0\t", "\n1\t", "next fragment"},
	{parse_latest, latest_text, "\n0\t", "\n00\t", "of fragment"},
	{parse_latest, latest_text, "\t2.10", "\t2", "of version"},
	{parse_latest, latest_text, "\t2.10", "\t2.10.1", "of version"},
	{parse_latest, latest_text, "\t2.10", "\t0.10", "contradicts"},
	{parse_latest, latest_text, "\t512", "\t512\t", "one value a column"},
	{parse_latest, latest_text, "\t512", "", "one value a column"},
	{parse_latest, latest_text, "\t512", "\t0", "contradicts"},
	{parse_latest, latest_text, "0.0\t-", "2.2\t-", "contradicts"},
	{parse_latest, latest_text, "-\t0\n", "-\t0", "without a newline"},
	{parse_latest, latest_text, "-\t0\n", "-\t0\n\n", "one value a column"},
	{parse_learner, learner_text, "2.31", "inf", "of loss"},
	{parse_learner, learner_text, "2.31", "2.31x", "of loss"},
	{parse_learner, learner_text, "# loss 2.31", "#loss 2.31", "missing"},
	{parse_taken, taken_text, "epoch 3", "epoch 0", "of epoch"},
	{parse_taken, taken_text, "waiting", "settled", "of word"},
	{parse_taken, taken_text, "norm", "-", "contradicts"},
	{parse_taken, taken_text, "waiting\t-", "waiting\tnorm", "contradicts"},
	{parse_taken, taken_text, "5", "5 ", "of taken"},
	{parse_open, open_text, "ben", "ann", "next good name"},
	{parse_open, open_text, "ben", "aa", "next good name"},
	{parse_open, open_text, "ben", "../ben", "next good name"},
	{parse_open, open_text, "ben\n", "ben", "without a newline"},
};

static void test_bad(void)
{
	struct dl_err e;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct bad *b = bad + i;
		char *text = change(b->text, b->from, b->to);
		int code;

		e = (struct dl_err){0};
		code = b->parse(text, strlen(text), &e);
		ok(code == DL_DATA && strstr(e.text, b->fact),
			"refused %zu: %s", i, e.text);
		free(text);
	}
	ok(parse_open("# dl-spool 1\nan\0n\n", 18, &e) == DL_DATA,
		"NUL is refused: %s", e.text);
	ok(parse_open("", 0, &e) == DL_DATA, "nothing is refused");
	ok(!parse_open("# dl-spool 1\n# later word\nann\n", 30, &e),
		"a key of later is passed over");
}

/* Every piece of a text that ends early is refused. */
static void test_cut(void)
{
	const char *last_row = strstr(latest_text, "\n1\t") + 1;
	int good = 1;

	for (size_t n = 0; n < sizeof latest_text - 1; n++)
		if (latest_text + n != last_row &&
			parse_latest(latest_text, n, NULL) != DL_DATA)
			good = 0;
	ok(good, "a text that is cut inside a line is refused");
}

static void test_names(void)
{
	static const char *const wrong[] = {"", "24.1.3.", "24.1.0." HASH,
		"024.1.3." HASH, "24.1.3." HASH "0", "24.131072.3." HASH,
		"24.1.3.../../../x", ".24.1.3." HASH, "24..3." HASH,
		"-1.1.3." HASH, "24.1.3", "18446744073709551616.1.3." HASH};
	char out[DL_SPOOL_NAME], longest[] = "18446744073709551615.131071."
					     "18446744073709551615." HASH;
	struct dl_spool_push v;
	struct dl_version version;
	uint64_t step;
	uint32_t p;

	ok(!dl_spool_push_parse(&v, longest) && v.seq == UINT64_MAX &&
			!strcmp(dl_spool_push_name(out, &v), longest),
		"the longest name of a push");
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ok(dl_spool_push_parse(&v, wrong[i]) != 0, "no push: \"%s\"",
			wrong[i]);
	ok(!dl_spool_open_name_parse("24.3", &step, &p) && step == 24 &&
			p == 3 &&
			!strcmp(dl_spool_open_name(out, step, p), "24.3"),
		"the name of a round");
	ok(dl_spool_open_name_parse("24.3.1", &step, &p) &&
			dl_spool_open_name_parse("24", &step, &p) &&
			dl_spool_open_name_parse("24.", &step, &p),
		"no rounds");
	ok(!dl_spool_version_parse("3.1.25", &p, &version) && p == 3 &&
			version.epoch == 1 && version.number == 25 &&
			!strcmp(dl_spool_version_name(out, p, version),
				"3.1.25"),
		"the name of a version");
	ok(dl_spool_version_parse("3.1", &p, &version) &&
			dl_spool_version_parse("3.1.25x", &p, &version),
		"no versions");
}

int main(void)
{
	test_latest();
	test_learner();
	test_taken();
	test_open();
	test_bad();
	test_cut();
	test_names();
	return done_testing();
}
