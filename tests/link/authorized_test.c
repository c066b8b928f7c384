#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "link/authorized.h"
#include "tests/tap.h"

/* Public keys of 32 equal bytes: 1, 2, 3. */
#define ONE "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
#define TWO "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI="
#define THREE "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwM="
#define X63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct dl_authorized *find(
	const struct dl_authorized_list *l, int byte)
{
	unsigned char key[DL_KEY];

	memset(key, byte, sizeof key);
	return dl_authorized_find(l, key);
}

static const struct {
	const char *text, *fact;
} refused[] = {
	{ONE, "f:1: a key without a name"},
	{ONE " # ann", "f:1: a key without a name"},
	{"ann " ONE, "f:1: the first word is no public key in base64"},
	{"AQEB ann", "f:1: the first word is no public key in base64"},
	/* 43 digits without padding; bits set past the end; another alphabet */
	{"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE ann",
		"f:1: the first word is no public key in base64"},
	{"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQF= ann",
		"f:1: the first word is no public key in base64"},
	{"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBA_E= ann",
		"f:1: the first word is no public key in base64"},
	{ONE "= ann", "f:1: the first word is no public key in base64"},
	{ONE " .ann", "f:1: not a good name: \".ann\""},
	{ONE " a/b", "f:1: not a good name: \"a/b\""},
	{ONE " x" X63, "f:1: not a good name: \"x" X63 "\""},
	{ONE " max=2", "f:1: not a good name: \"max=2\""},
	{ONE " ann max", "f:1: no such option: \"max\""},
	{ONE " ann max=", "f:1: max is not 1 to 10000: \"\""},
	{ONE " ann max=0", "f:1: max is not 1 to 10000: \"0\""},
	{ONE " ann max=10001", "f:1: max is not 1 to 10000: \"10001\""},
	{ONE " ann max=-1", "f:1: max is not 1 to 10000: \"-1\""},
	{ONE " ann max=2 max=3", "f:1: an option twice: \"max=3\""},
	{ONE " ann MAX=2", "f:1: no such option: \"MAX=2\""},
	{ONE " ann end end", "f:1: an option twice: \"end\""},
	{ONE " ann endless", "f:1: no such option: \"endless\""},
	{ONE " ann end=1", "f:1: no such option: \"end=1\""},
	{ONE " ann observer=", "f:1: no such option: \"observer=\""},
	{ONE " ann admin", "f:1: no such option: \"admin\""},
	{ONE " ann caf\xc3\xa9", "f:1: no such option: \"caf\\xc3\\xa9\""},
	{ONE " ann rate=", "f:1: rate is not bytes a second: \"\""},
	{ONE " ann rate=0", "f:1: rate is not bytes a second: \"0\""},
	{ONE " ann rate=fast", "f:1: rate is not bytes a second: \"fast\""},
	{ONE " ann fragments=",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=1,",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=,1",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=3-1",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=1-",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=1-2-3",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=1,1",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=0-4,4",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=4294967295",
		"f:1: fragments are not rising numbers and ranges"},
	{ONE " ann fragments=1 fragments=2",
		"f:1: an option twice: \"fragments=2\""},
	{ONE " ann fragments=1 bad", "f:1: no such option: \"bad\""},
	{ONE " ann expires=", "f:1: expires is not YYYY-MM-DD[THH:MM:SSZ]: "
			      "\"\""},
	{ONE " ann expires=2027-02-29", "f:1: expires is not "
					"YYYY-MM-DD[THH:MM:SSZ]: "
					"\"2027-02-29\""},
	{ONE " ann expires=2027-13-01", "f:1: expires is not "
					"YYYY-MM-DD[THH:MM:SSZ]: "
					"\"2027-13-01\""},
	{ONE " ann expires=2027-1-31", "f:1: expires is not "
				       "YYYY-MM-DD[THH:MM:SSZ]: "
				       "\"2027-1-31\""},
	{ONE " ann expires=2027-01-31T24:00:00Z",
		"f:1: expires is not YYYY-MM-DD[THH:MM:SSZ]: "
		"\"2027-01-31T24:00:00Z\""},
	{ONE " ann expires=2027-01-31T12:00:00",
		"f:1: expires is not YYYY-MM-DD[THH:MM:SSZ]: "
		"\"2027-01-31T12:00:00\""},
	{ONE " ann expires=2027-01-31 12:00", "f:1: no such option: \"12:00\""},
	{ONE " ann observer max=2",
		"f:1: an observer is no group and pushes no fragments"},
	{ONE " ann fragments=1 observer",
		"f:1: an observer is no group and pushes no fragments"},
	{ONE " " X63 " max=1", "f:1: " X63 ".0 is longer than 63 bytes"},
	{ONE " ann\n\n# x\n" ONE " ben\n", "f:4: the same key as in line 1"},
	{TWO " ann\n" ONE " ann\n", "f:2: the same name as in line 1"},
	{ONE " ann\n" TWO " ann max=3\n", "f:2: the same name as in line 1"},
	{TWO " ann max=3\n" ONE " ann.2\n",
		"f:2: a name of the group as in line 1"},
	{ONE " ann.2\n" TWO " ann max=3\n",
		"f:2: a name of the group as in line 1"},
	{ONE " ann.2 max=2\n" TWO " ann max=3\n" THREE " ann.2.x\n",
		"f:2: a name of the group as in line 1"},
	{ONE " ann\r\n" TWO " ben\r\n", "f:1: ends in CR LF, not in LF alone"},
	{ONE " an\x1b[2Jn", "f:1: control character 0x1b"},
	{"# \x7f", "f:1: control character 0x7f"},
};

static void test_refused(void)
{
	struct dl_authorized_list l;
	struct dl_err e;

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const char *text = refused[i].text;
		int code = dl_authorized_parse(&l, text, strlen(text), "f", &e);

		if (!ok(code == DL_DATA && !strcmp(e.text, refused[i].fact) &&
				    !l.entries && !l.entry,
			    "%s", refused[i].fact))
			printf("# code %d, \"%s\"\n", code, code ? e.text : "");
		if (!code)
			dl_authorized_release(&l);
	}
}

static int parse_is(const char *text, size_t n, const char *fact)
{
	struct dl_authorized_list l;
	struct dl_err e;

	if (!dl_authorized_parse(&l, text, n, "f", &e)) {
		dl_authorized_release(&l);
		return 0;
	}
	return !strcmp(e.text, fact);
}

static void test_nuls_and_lengths(void)
{
	static const char nul[] = ONE " ann\0 end\n";
	struct dl_authorized_list l;
	struct dl_buf b = DL_BUF_INIT;
	struct dl_err e;

	ok(parse_is(nul, sizeof nul - 1, "f:1: control character 0x00"),
		"a NUL is refused");
	dl_buf_str(&b, ONE " ann #");
	while (b.len < DL_AUTHORIZED_LINE)
		dl_buf_byte(&b, 'x');
	ok(!dl_authorized_parse(&l, (char *)b.data, b.len, "f", &e) &&
			l.entries == 1,
		"a line of %d bytes", DL_AUTHORIZED_LINE);
	dl_authorized_release(&l);
	dl_buf_byte(&b, 'x');
	ok(parse_is((char *)b.data, b.len, "f:1: longer than 4096 bytes"),
		"one byte more is refused");
	dl_buf_clear(&b);
	dl_buf_str(&b, "\n\n");
	while (b.len < 1 << 20)
		dl_buf_byte(&b, 'A');
	ok(parse_is((char *)b.data, b.len, "f:3: longer than 4096 bytes"),
		"a line of a megabyte is refused");
	ok(!dl_authorized_parse(&l, "", 0, "f", &e) && !find(&l, 1),
		"an empty file lets nobody in");
	dl_authorized_release(&l);
	dl_buf_free(&b);
}

static const char good[] =
	"# who may come\n"
	"\n"
	"  \t \n" THREE " site2 max=8 rate=10M   # eight machines\n"
	"\t" ONE "\tann fragments=0,3-5 expires=2027-01-31 end\n" TWO
	" watcher observer expires=2028-02-29T12:34:56Z";

static void test_good(void)
{
	struct dl_authorized_list l;
	const struct dl_authorized *ann, *watcher, *site;
	struct dl_err e;

	if (!ok(!dl_authorized_parse(&l, good, sizeof good - 1, "f", &e),
		    "a good file"))
		return;
	ann = find(&l, 1);
	watcher = find(&l, 2);
	site = find(&l, 3);
	ok(l.entries == 3 && ann && watcher && site && !find(&l, 4),
		"keys are found, and no others");
	ok(!strcmp(ann->name, "ann") && ann->end && !ann->observer &&
			!ann->max && !ann->rate && ann->line == 5,
		"ann's options");
	ok(ann->expires == 1801353600 * DL_SECOND, "a date is its midnight");
	ok(watcher->expires == 1835440496 * DL_SECOND && watcher->observer,
		"a time of a leap day");
	ok(site->max == 8 && site->rate == 10000000 &&
			site->expires == INT64_MAX && site->line == 4,
		"a group's options");
	ok(dl_authorized_may_push(ann, 0) && !dl_authorized_may_push(ann, 1) &&
			!dl_authorized_may_push(ann, 2) &&
			dl_authorized_may_push(ann, 3) &&
			dl_authorized_may_push(ann, 5) &&
			!dl_authorized_may_push(ann, 6),
		"fragments=0,3-5");
	ok(dl_authorized_may_push(site, 77), "others may push all");
	ok(!dl_authorized_may_push(watcher, 0), "an observer pushes nothing");
	dl_authorized_release(&l);
	ok(!l.entries && !find(&l, 1), "nobody is left after release");
}

static void test_claims(void)
{
	static const struct {
		int byte;
		const char *name;
		enum dl_claim claim;
		uint32_t slot;
	} cases[] = {
		{1, "ann", DL_CLAIM_NAME, 0},
		{1, "an", DL_CLAIM_NOT, 0},
		{1, "ann.0", DL_CLAIM_NOT, 0},
		{1, "annx", DL_CLAIM_NOT, 0},
		{3, "site2", DL_CLAIM_ANY, 0},
		{3, "site2.0", DL_CLAIM_MEMBER, 0},
		{3, "site2.7", DL_CLAIM_MEMBER, 7},
		{3, "site2.8", DL_CLAIM_NOT, 0},
		{3, "site2.07", DL_CLAIM_NOT, 0},
		{3, "site2.", DL_CLAIM_NOT, 0},
		{3, "site2.7x", DL_CLAIM_NOT, 0},
		{3, "site2x7", DL_CLAIM_NOT, 0},
		{3, "ann", DL_CLAIM_NOT, 0},
	};
	struct dl_authorized_list l;
	char name[DL_NAME_MAX + 1];
	struct dl_err e;

	dl_authorized_parse(&l, good, sizeof good - 1, "f", &e);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const struct dl_authorized *a = find(&l, cases[i].byte);
		uint32_t slot = 0;

		ok(dl_authorized_claim(a, cases[i].name, &slot) ==
					cases[i].claim &&
				slot == cases[i].slot,
			"%s as %s", a->name, cases[i].name);
	}
	ok(!strcmp(dl_authorized_member(name, find(&l, 3), 7), "site2.7"),
		"a member's name");
	dl_authorized_release(&l);
}

static void test_same(void)
{
	static const char *const lines[] = {ONE " ann", ONE " ben",
		ONE " ann max=1", ONE " ann rate=1M", ONE " ann end",
		ONE " ann observer", ONE " ann expires=2027-01-31",
		ONE " ann fragments=1", ONE " ann fragments=1,3",
		ONE " ann fragments=1-2"};
	enum { N = sizeof lines / sizeof *lines };
	struct dl_authorized_list l[N], again;
	struct dl_err e;
	int wrong = 0;

	for (size_t i = 0; i < N; i++)
		dl_authorized_parse(&l[i], lines[i], strlen(lines[i]), "f", &e);
	for (size_t i = 0; i < N; i++) {
		dl_authorized_parse(
			&again, lines[i], strlen(lines[i]), "f", &e);
		for (size_t k = 0; k < N; k++)
			wrong += dl_authorized_same(find(&again, 1),
					 find(&l[k], 1)) != (i == k);
		wrong += dl_authorized_same(find(&again, 1), NULL);
		dl_authorized_release(&again);
	}
	ok(!wrong && dl_authorized_same(NULL, NULL),
		"a line that has changed is not the same");
	for (size_t i = 0; i < N; i++)
		dl_authorized_release(&l[i]);
}

static int read_is(const char *path, mode_t mode, int code, const char *fact)
{
	struct dl_authorized_list l;
	struct dl_err e = {0};
	int got;

	chmod(path, mode);
	got = dl_authorized_read(&l, path, &e);
	dl_authorized_release(&l);
	if (got == code && (!got || strstr(e.text, fact)))
		return 1;
	printf("# %d %s\n", got, e.text);
	return 0;
}

static void test_files(void)
{
	char folder[] = "/tmp/authorized_test.XXXXXX", path[64], pipe[64];
	FILE *f;

	if (!mkdtemp(folder))
		exit(1);
	snprintf(path, sizeof path, "%s/f", folder);
	snprintf(pipe, sizeof pipe, "%s/pipe", folder);
	ok(read_is(path, 0644, DL_NOINPUT, "No such file"), "no file");
	f = fopen(path, "w");
	fputs(good, f);
	fclose(f);
	ok(read_is(path, 0600, 0, "") && read_is(path, 0644, 0, ""),
		"a file that others may read");
	ok(read_is(path, 0664, DL_NOPERM, "/f: mode 0664 lets others write it"),
		"a file that the group may write");
	ok(read_is(path, 0602, DL_NOPERM, "/f: mode 0602 lets others write it"),
		"a file that all may write");
	if (geteuid() == 0 && !chown(path, 12345, (gid_t)-1))
		ok(read_is(path, 0600, DL_NOPERM,
			   "/f: its owner is neither this user nor root"),
			"a file of somebody else");
	else
		skip("only root can give files away");
	f = fopen(path, "w");
	for (int i = 0; i <= DL_AUTHORIZED_FILE; i++)
		fputc('\n', f);
	fclose(f);
	chown(path, geteuid(), (gid_t)-1);
	ok(read_is(path, 0600, DL_DATA, "/f: larger than 4194304 bytes"),
		"a huge file");
	mkfifo(pipe, 0600);
	ok(read_is(pipe, 0600, DL_NOINPUT, "/pipe: not a file"), "a pipe");
	ok(read_is(folder, 0700, DL_NOINPUT, ": not a file"), "a folder");
	unlink(path);
	unlink(pipe);
	rmdir(folder);
}

int main(void)
{
	test_refused();
	test_nuls_and_lengths();
	test_good();
	test_claims();
	test_same();
	test_files();
	return done_testing();
}
