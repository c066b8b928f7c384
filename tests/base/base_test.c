/* Errors, buffers, numbers, files, threads, random draws, hashes. */
#include "base/cpu.h"
#include "base/err.h"
#include "base/exact.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/pool.h"
#include "base/rng.h"
#include "base/rule.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"

static void test_err(void)
{
	struct dl_err e;
	char out[24];

	ok(dl_fail(&e, DL_DATA, "byte %d", 7) == DL_DATA, "fail returns code");
	dl_at(&e, "model %s", "x\ny");
	ok(!strcmp(e.text, "model x?y: byte 7"), "place goes in front: %s",
		e.text);
	ok(!strcmp(dl_scrub(out, sizeof out, "a\0\"b", 4), "a\\x00\\x22b"),
		"scrub escapes: %s", out);
	dl_scrub(out, sizeof out, "abcdefghijklmnopqrstuvwxyz", 26);
	ok(strlen(out) < sizeof out && strstr(out, "..."), "scrub cuts: %s",
		out);
}

static void test_num(void)
{
	uint64_t u;
	int64_t t;
	double d;

	ok(!dl_parse_u64("18446744073709551615", 0, UINT64_MAX, &u) &&
			u == UINT64_MAX,
		"largest u64");
	ok(dl_parse_u64("18446744073709551616", 0, UINT64_MAX, &u), "over u64");
	ok(dl_parse_u64("", 0, 9, &u) && dl_parse_u64("-1", 0, 9, &u) &&
			dl_parse_u64("3x", 0, 9, &u) &&
			dl_parse_u64("10", 0, 9, &u),
		"bad u64 refused");
	ok(!dl_parse_size("5G", &u) && u == 5000000000u, "5G");
	ok(!dl_parse_size("64KiB", &u) && u == 65536, "64KiB");
	ok(dl_parse_size("5X", &u) && dl_parse_size("9e99", &u) &&
			dl_parse_size("-1", &u),
		"bad sizes refused");
	ok(!dl_parse_rate("100M", &u) && u == 100000000, "100M a second");
	ok(!dl_parse_rate("100Mbit", &u) && u == 12500000, "100Mbit");
	ok(dl_parse_rate("0", &u) && dl_parse_rate("7bit", &u) &&
			dl_parse_rate("bit", &u) && dl_parse_rate("1bits", &u),
		"bad rates");
	ok(!dl_parse_duration("250ms", &t) && t == 250000000, "250ms");
	ok(!dl_parse_duration("1.5m", &t) && t == 90 * DL_SECOND, "1.5m");
	ok(!dl_parse_duration("1h30m", &t) && t == 5400 * DL_SECOND, "1h30m");
	ok(!dl_parse_duration("2m05s", &t) && t == 125 * DL_SECOND, "2m05s");
	ok(!dl_parse_duration("7", &t) && t == 7 * DL_SECOND, "7");
	ok(dl_parse_duration("30m1h", &t) && dl_parse_duration("1h2h", &t) &&
			dl_parse_duration("1h30", &t) &&
			dl_parse_duration("1h ", &t) &&
			dl_parse_duration("h", &t) &&
			dl_parse_duration("1h-1m", &t) &&
			dl_parse_duration("100000d1s", &t),
		"bad sums of durations refused");
	ok(dl_parse_duration("100000d", &t), "no duration overflows a clock");
	ok(dl_parse_duration("2 s", &t) && dl_parse_duration("nan", &t),
		"bad durations refused");
	ok(!dl_parse_double("1e-3", 0, 1, &d) && d == 1e-3, "1e-3");
	ok(dl_parse_double("0x1p3", 0, 99, &d) &&
			dl_parse_double("inf", 0, 1, &d),
		"hexadecimal and inf refused");
}

static void test_file(void)
{
	char folder[] = "/tmp/dl-base-XXXXXX";
	struct dl_buf b = DL_BUF_INIT;
	struct dl_output o;
	struct dl_err e;
	char *path;

	if (!mkdtemp(folder))
		exit(99);
	path = dl_sprintf("%s/f", folder);
	ok(!dl_write_file(path, "hello", 5, &e), "write");
	ok(!dl_output_open(&o, path, &e) && !dl_output_write(&o, "x", 1, &e),
		"begin again");
	ok(!dl_read_file(path, 100, &b, &e) && b.len == 5,
		"unfinished output does not show");
	dl_output_abort(&o);
	ok(dl_read_file(path, 4, &b, &e) == DL_DATA, "limit: %s", e.text);
	unlink(path);
	ok(dl_read_file(path, 4, &b, &e) == DL_NOINPUT, "missing: %s", e.text);
	ok(!dl_output_check(path, &e) && !rmdir(folder), "nothing left behind");
	ok(dl_output_open(&o, "/nonexistent/f", &e) == DL_CANTCREAT,
		"cannot create: %s", e.text);
	ok(dl_output_check("/nonexistent/f", &e) == DL_CANTCREAT,
		"known before: %s", e.text);
	ok(dl_output_check("/tmp", &e) == DL_CANTCREAT, "%s", e.text);
	dl_buf_free(&b);
	free(path);
}

/* In a child that dies of a signal half-way. */
static void fill_and_die(const char *folder, int shards)
{
	struct dl_output_folder f;
	struct dl_output o;
	struct dl_err e;

	signal(SIGTERM, SIG_DFL);
	dl_output_on_signal();
	if (dl_output_folder_open(&f, folder, &e))
		_exit(99);
	for (int i = 0; i < shards; i++) {
		char *path = dl_sprintf("%s/%d", folder, i);

		if (dl_output_open(&o, path, &e) ||
			dl_output_write(&o, "x", 1, &e) ||
			dl_output_finish(&o, &e))
			_exit(99);
	}
	raise(SIGTERM);
	_exit(98);
}

static void test_set(void)
{
	char folder[] = "/tmp/dl-base-XXXXXX";
	struct dl_output o[3] = {
		DL_OUTPUT_INIT, DL_OUTPUT_INIT, DL_OUTPUT_INIT};
	char *path[3], *inner;
	struct dl_err e;
	int status;
	pid_t child;

	if (!mkdtemp(folder))
		exit(99);
	inner = dl_sprintf("%s/inner", folder);
	child = fork();
	if (!child)
		fill_and_die(inner, 100);
	waitpid(child, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM,
		"a filter dies of its signal");
	ok(access(inner, F_OK), "and takes 100 files and a folder along");
	for (int i = 0; i < 3; i++) {
		path[i] = dl_sprintf("%s/%d", folder, i);
		dl_output_open(&o[i], path[i], &e);
	}
	/* A folder in the way of the last name. */
	mkdir(path[2], 0777);
	ok(dl_output_commit_all(o, 3, &e) == DL_IOERR, "%s", e.text);
	rmdir(path[2]);
	ok(!rmdir(folder), "a set that has no last name has none");
	for (int i = 0; i < 3; i++)
		free(path[i]);
	free(inner);
}

/* A process that was killed may have had this one's number. */
static void test_leftovers(void)
{
	char folder[] = "/tmp/dl-base-XXXXXX", name[64];
	struct dl_output o;
	struct dl_err e;
	int left = 0;

	if (!mkdtemp(folder) || chdir(folder))
		exit(99);
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "f.tmp.%ld.%d", (long)getpid(), i);
		close(open(name, O_WRONLY | O_CREAT, 0666));
	}
	ok(!dl_output_open(&o, "f", &e) && !dl_output_write(&o, "x", 1, &e) &&
			!dl_output_commit(&o, &e),
		"what a killed process left is in nobody's way");
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "f.tmp.%ld.%d", (long)getpid(), i);
		left += !unlink(name);
	}
	ok(left == 100 && !unlink("f") && !rmdir(folder), "and stays there");
}

static void test_make_folder(void)
{
	char folder[] = "/tmp/dl-base-XXXXXX";
	struct dl_err e;

	if (!mkdtemp(folder) || chdir(folder))
		exit(99);
	ok(!dl_make_folder("a", &e) && !dl_make_folder("a/b//", &e) &&
			!dl_make_folder("a/b", &e) && !rmdir("a/b") &&
			!rmdir("a"),
		"folders are made, or are there");
	ok(dl_make_folder("x/y", &e) == DL_CANTCREAT, "%s", e.text);
	ok(!dl_fsync_parent("/", &e) && !dl_fsync_parent("/tmp//", &e) &&
			!dl_fsync_parent("./x", &e) &&
			!dl_fsync_parent("x/", &e),
		"every path has a folder it is in");
	ok(dl_fsync_parent("x/y", &e) == DL_IOERR, "%s", e.text);
	rmdir(folder);
}

static void add_one(void *ctx, size_t i)
{
	atomic_fetch_add((atomic_size_t *)ctx, i + 1);
}

static void test_pool(void)
{
	int good = 1;

	for (unsigned threads = 1; threads <= 7; threads += 3) {
		struct dl_pool *p = dl_pool_new(threads);

		for (size_t n = 0; n < 300; n++) {
			atomic_size_t sum = 0;

			dl_pool_run(p, n, add_one, &sum);
			good &= sum == n * (n + 1) / 2;
		}
		dl_pool_free(p);
	}
	ok(good, "every block runs exactly once");
}

static void test_rng(void)
{
	struct dl_rng r = {dl_rng_key(1, 2), 0};
	double sum = 0, squares = 0;
	int n = 100000;

	for (int i = 0; i < n; i++) {
		double x = dl_rng_normal(&r);

		sum += x;
		squares += x * x;
	}
	ok(fabs(sum / n) < 0.02 && fabs(squares / n - 1) < 0.02,
		"normal draws have mean 0 and deviation 1");
	ok(dl_rng_at(1, 2) != dl_rng_at(2, 1), "key and counter differ");
}

/* Largest relative error of a against b. */
static double error_of(double a, double b)
{
	return a == b ? 0 : fabs(a - b) / fabs(b);
}

static void test_exact(void)
{
	struct dl_rng r = {1, 0};
	double log_error = 0, exp_error = 0, cos_error = 0;

	for (int i = 0; i < 100000; i++) {
		double u = 1 - dl_rng_uniform(&r), x = 600 * (u - 0.5);
		double turn = cos(6.283185307179586 * u);

		log_error = fmax(log_error, error_of(dl_exact_log(u), log(u)));
		exp_error = fmax(exp_error, error_of(dl_exact_exp(x), exp(x)));
		cos_error = fmax(cos_error, fabs(dl_exact_cos_turn(u) - turn));
	}
	ok(log_error < 1e-15, "logarithm: %g", log_error);
	ok(exp_error < 1e-15, "exponential: %g", exp_error);
	ok(cos_error < 1e-15, "cosine: %g", cos_error);
	ok(dl_exact_log(1) == 0 && dl_exact_log(0x1p-53) == log(0x1p-53) &&
			dl_exact_cos_turn(0) == 1 && dl_exact_exp(0) == 1,
		"and at the ends");
}

static void test_hash(void)
{
	char hex[DL_HASH_HEX];
	struct dl_hash h;

	dl_hash_init(&h);
	dl_hash_hex(&h, hex);
	ok(!strcmp(hex, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45"
			"cdf12fe3a8"),
		"BLAKE2b-256 of nothing");
}

/* Of n bytes, in pieces of that size. */
static int hash_differs(const unsigned char *p, size_t n, size_t piece)
{
	char ours[DL_HASH_HEX], theirs[DL_HASH_HEX];
	unsigned char sum[DL_HASH_BYTES];
	struct dl_hash h;

	dl_hash_init(&h);
	for (size_t at = 0; at < n; at += piece)
		dl_hash_add(&h, p + at, n - at < piece ? n - at : piece);
	dl_hash_hex(&h, ours);
	crypto_generichash(sum, sizeof sum, p, n, NULL, 0);
	sodium_bin2hex(theirs, sizeof theirs, sum, sizeof sum);
	return strcmp(ours, theirs) != 0;
}

static void test_hash_sizes(void)
{
	unsigned char bytes[640];
	size_t differ = 0;

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i * i + i / 7);
	for (size_t n = 0; n <= sizeof bytes; n++)
		for (size_t piece = 1; piece <= n; piece += 1 + piece / 2)
			differ += (size_t)hash_differs(bytes, n, piece);
	ok(!differ, "BLAKE2b-256 of any size is libsodium's, but %zu", differ);
}

static void test_rule(void)
{
	int fine = 1;

	for (int rule = 0; rule < DL_RULES; rule++) {
		const char *name = dl_rule_name((enum dl_rule)rule);

		fine &= dl_rule_parse(name, strlen(name)) == rule;
	}
	ok(fine, "a rule's name names it");
	ok(dl_rule_parse("means", 4) == DL_MEAN &&
			dl_rule_parse("means", 5) == -1 &&
			dl_rule_parse("rd", 2) == -1 &&
			dl_rule_parse("", 0) == -1,
		"only whole names");
}

int main(void)
{
	test_err();
	test_num();
	test_file();
	test_set();
	test_leftovers();
	test_make_folder();
	test_pool();
	test_rng();
	test_exact();
	test_hash();
	test_hash_sizes();
	test_rule();
	ok(dl_cpu_level() < DL_CPU_LEVELS, "level %s",
		dl_cpu_name(dl_cpu_level()));
	return done_testing();
}
