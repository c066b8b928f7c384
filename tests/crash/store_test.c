/*
 * The store, crashed at every call: whatever happens, it holds one of the
 * states that were committed, and none older than the last that the writer said
 * was. The writer is this program too, below the crash shim.
 */
#include "state/store.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../tap.h"
#include "crash.h"

static const char layout_text[] =
	"# name\tdtype\tshape\telements\tfragment\trule\n"
	"# format\t1\n"
	"a\tF32\t4\t4\t0\trda\n"
	"b\tF32\t2\t2\t1\tmean\n";
enum { P = 2, MOST = 4, COMMITS = 4 };

static struct dl_layout layout;

/* ---- what is stored: all of it follows from the number of commits ------- */

/* Commit n is of fragment n mod P. */
static uint64_t commits_of(uint32_t p, uint64_t n)
{
	return (n + P - 1 - (p + P - 1) % P) / P;
}

static void fill(float v[MOST], int kind, uint32_t p, uint64_t n)
{
	for (int i = 0; i < MOST; i++)
		v[i] = kind && !n ? 0
				  : (float)(1000 * kind + 100 * (int)p +
					    10 * (int)n + i);
}

static struct dl_sync_saved state(uint64_t epoch, uint64_t n)
{
	struct dl_sync_saved v = {
		.epoch = epoch, .clock = n, .fragments = P, .learners = 1};

	v.fragment = dl_alloc_array(P, sizeof *v.fragment);
	v.learner = dl_alloc(sizeof *v.learner);
	strcpy(v.learner->name, "ann");
	v.learner->merged = dl_alloc_array(P, sizeof(uint64_t));
	for (uint32_t p = 0; p < P; p++) {
		v.learner->merged[p] = commits_of(p, n);
		v.fragment[p].version =
			(struct dl_version){epoch, commits_of(p, n)};
	}
	return v;
}

/* ---- the writer --------------------------------------------------------- */

static void say(const char *fmt, uint64_t n)
{
	char line[32];
	int size = snprintf(line, sizeof line, fmt, (unsigned long long)n);

	if (write(STDOUT_FILENO, line, (size_t)size) != size)
		exit(1);
}

static int create(const char *folder, struct dl_err *e)
{
	const struct dl_store_run run = {"demo", 24};
	struct dl_sync_saved first = state(1, 0);
	float value[P][MOST];
	const float *values[P] = {value[0], value[1]};
	int rc;

	for (uint32_t p = 0; p < P; p++)
		fill(value[p], 0, p, 0);
	rc = dl_store_create(folder, &run, &layout, &first, values, e);
	dl_sync_saved_release(&first);
	return rc;
}

/* Every third commit has an error file too. */
static int commit(struct dl_store *s, uint64_t epoch, uint64_t n)
{
	uint32_t p = (uint32_t)(n % P);
	float value[MOST], momentum[MOST], error[MOST];
	struct dl_sync_saved v = state(epoch, n);
	struct dl_err e;
	int rc;

	fill(value, 0, p, commits_of(p, n));
	fill(momentum, 1, p, commits_of(p, n));
	fill(error, 2, p, commits_of(p, n));
	rc = dl_store_commit(
		s, p, value, momentum, n % 3 ? NULL : error, &v, &e);
	dl_sync_saved_release(&v);
	if (rc)
		fprintf(stderr, "%s\n", e.text);
	else
		say("%llu\n", n);
	return rc;
}

/* As a syncer begins: makes the store when there is none, and a new epoch. */
static struct dl_store *begin(const char *folder, uint64_t *epoch)
{
	struct dl_store *s;
	struct dl_sync_saved risen;
	struct dl_err e;
	int rc = dl_store_open(&s, folder, DL_STORE_OWN, &e);

	if (rc == DL_NOINPUT) {
		rc = create(folder, &e);
		if (!rc)
			rc = dl_store_open(&s, folder, DL_STORE_OWN, &e);
	}
	if (!rc) {
		const struct dl_sync_saved *now = dl_store_saved(s);

		*epoch = now->epoch + 1;
		risen = state(*epoch, now->clock);
		rc = dl_store_commit_saved(s, &risen, &e);
		dl_sync_saved_release(&risen);
	}
	if (rc) {
		fprintf(stderr, "%s\n", e.text);
		exit(rc);
	}
	return s;
}

static int write_store(void *folder)
{
	uint64_t epoch, n;
	struct dl_store *s = begin(folder, &epoch);
	int rc = 0;

	n = dl_store_saved(s)->clock;
	say("%llu\n", n);
	while (!rc && n < COMMITS)
		rc = commit(s, epoch, ++n);
	dl_store_close(s);
	return rc;
}

/* ---- what is looked for after a crash ----------------------------------- */

static char *store_folder(void)
{
	static char *path;

	if (!path)
		path = dl_sprintf("%s/store", crash_root_folder());
	return path;
}

/* The last commit that the writer told of; -1 for none. */
static int last_told(struct dl_buf *out)
{
	const char *text = dl_buf_cstr(out), *end = text + out->len;

	if (end == text)
		return -1;
	for (end--; end > text && end[-1] != '\n';)
		end--;
	return atoi(end);
}

static int files_in(const char *sub)
{
	char *path = dl_sprintf("%s/%s", store_folder(), sub);
	DIR *d = opendir(path);
	struct dirent *entry;
	int n = 0;

	while (d && (entry = readdir(d)))
		n += *entry->d_name != '.';
	if (d)
		closedir(d);
	free(path);
	return n;
}

/* Everything is as after commit n. */
static int is_whole(struct dl_store *s, uint64_t n)
{
	const struct dl_sync_saved *now = dl_store_saved(s);
	int whole = now->learner[0].merged[0] == commits_of(0, n) &&
		    now->learner[0].merged[1] == commits_of(1, n);

	for (uint32_t p = 0; whole && p < P; p++) {
		size_t size = layout.fragment[p].elements * sizeof(float);
		float got[2][MOST], want[MOST];
		struct dl_err e;

		whole = !dl_store_load(s, p, got[0], got[1], &e);
		for (int kind = 0; whole && kind < 2; kind++) {
			fill(want, kind, p, commits_of(p, n));
			whole = !memcmp(got[kind], want, size);
		}
	}
	return whole;
}

/* 1 when the store is as it shall be after a crash of a writer that said out.
 * The owner looks last, since it tidies up. */
static int is_sound(struct dl_buf *out, enum dl_store_mode mode)
{
	int told = last_told(out), sound;
	struct dl_store *s;
	struct dl_err e;
	int rc = dl_store_open(&s, store_folder(), mode, &e);

	if (rc)
		return rc == DL_NOINPUT && told < 0;
	sound = (int)dl_store_saved(s)->clock >= told &&
		(int)dl_store_saved(s)->clock <= (told < 0 ? 0 : told + 1) &&
		is_whole(s, dl_store_saved(s)->clock);
	dl_store_close(s);
	if (mode == DL_STORE_OWN)
		sound = sound && files_in("global") == P &&
			files_in("momentum") == P;
	return sound;
}

static int run(const struct crash *plan, struct dl_buf *out)
{
	return crash_run(plan, write_store, store_folder(), out);
}

static unsigned count(const char *call)
{
	crash_clean();
	return crash_count(write_store, store_folder(), call);
}

/* Crashes at call at, then looks, then goes on to the end. */
static int survives(const struct crash *plan)
{
	const struct crash none = {0};
	struct dl_buf out = DL_BUF_INIT;
	int good;

	crash_clean();
	if (run(plan, &out) != CRASHED)
		return 0;
	good = is_sound(&out, DL_STORE_LOOK);
	if (good)
		good = !run(&none, &out) && last_told(&out) == COMMITS &&
		       is_sound(&out, DL_STORE_OWN);
	dl_buf_free(&out);
	return good;
}

static void test_crashes(const char *what, unsigned seed)
{
	unsigned calls = count(""), tried = 0, bad = 0;

	for (unsigned at = crash_all() ? 1 : 1 + seed % 5; at <= calls;
		at += crash_all() ? 1 : 13) {
		struct crash plan = {.what = what, .at = at, .seed = seed};

		tried++;
		if (survives(&plan))
			continue;
		bad++;
		printf("# %s at call %u of %u\n", what, at, calls);
	}
	ok(tried && !bad, "%s at %u of %u calls", what, tried, calls);
}

/* Killed, and then the power fails while it recovers. */
static void test_twice(void)
{
	unsigned calls = count(""), tried = 0, bad = 0;

	for (unsigned at = 30; at <= calls; at += crash_all() ? 1 : 31)
		for (unsigned seed = 0; seed < (crash_all() ? 20 : 2); seed++) {
			struct crash kill = {.what = "kill", .at = at};
			struct crash cut = {.what = seed ? "mixed" : "power",
				.at = 1 + (at + 3 * seed) % 12,
				.seed = seed};
			struct dl_buf out = DL_BUF_INIT;
			int died;

			crash_clean();
			run(&kill, &out);
			died = run(&cut, NULL);
			tried++;
			if (!is_sound(&out, DL_STORE_OWN) || died != CRASHED) {
				bad++;
				printf("# killed at %u, cut at %u, seed %u\n",
					at, cut.at, seed);
			}
			dl_buf_free(&out);
		}
	ok(tried && !bad, "killed, then a power cut on the way up: %u", tried);
}

/* The first call at which a power cut shows that a sync was left out; 0 when
 * none does. */
static unsigned noticed(const char *skip, unsigned from, unsigned calls)
{
	static const char *const cuts[] = {"power", "data"};

	for (unsigned at = from; at <= calls; at++)
		for (int i = 0; i < 2; i++) {
			struct crash plan = {
				.what = cuts[i], .at = at, .skip = skip};

			if (!survives(&plan))
				return at;
		}
	return 0;
}

/* By what they are for; each must be missed. */
static void test_left_out(void)
{
	static const char *const syncs[] = {"*/store/HEAD.tmp.*", "*/store",
		"*/store/global/*.tmp.*", "*/store/global",
		"*/store/momentum/*.tmp.*", "*/store/momentum",
		"*/store/layout.tsv.tmp.*", "*/root"};
	unsigned calls = count("");

	for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++) {
		unsigned at = noticed(syncs[i], 40, calls);

		ok(at != 0, "without the sync of %s it fails (at call %u)",
			syncs[i], at);
	}
}

/* One by one. */
static void test_each_left_out(void)
{
	unsigned calls = count(""), syncs = count("sync");

	for (unsigned k = 1; crash_all() && k <= syncs; k++) {
		char number[16];
		unsigned at;

		snprintf(number, sizeof number, "%u", k);
		at = noticed(number, 1, calls);
		printf("# sync %u of %u: %s %u\n", k, syncs,
			at ? "missed at call" : "never missed", at);
	}
}

static void test_lies(void)
{
	struct crash plan = {.what = "lie"};
	struct dl_buf out = DL_BUF_INIT;

	crash_clean();
	ok(run(&plan, &out) == 0 && is_sound(&out, DL_STORE_OWN),
		"renames that work but answer ENOENT");
	dl_buf_free(&out);
}

/* A call that fails ends the writer with 73 or 74; the state is as before, and
 * another goes on. */
static void test_errors(const char *what)
{
	unsigned calls = count(""), tried = 0, bad = 0;
	const struct crash none = {0};

	for (unsigned at = 1; at <= calls; at += crash_all() ? 1 : 17) {
		struct crash plan = {.what = what, .at = at};
		struct dl_buf out = DL_BUF_INIT;
		int rc;

		crash_clean();
		rc = run(&plan, &out);
		tried++;
		if ((rc && rc != DL_CANTCREAT && rc != DL_IOERR) ||
			!is_sound(&out, DL_STORE_LOOK) || run(&none, &out) ||
			!is_sound(&out, DL_STORE_OWN)) {
			bad++;
			printf("# %s at call %u of %u: %d\n", what, at, calls,
				rc);
		}
		dl_buf_free(&out);
	}
	ok(tried && !bad, "%s at %u of %u calls", what, tried, calls);
}

int main(int argc, char **argv)
{
	struct dl_err e;

	(void)argc;
	crash_begin(argv);
	if (dl_layout_parse(&layout, layout_text, sizeof layout_text - 1, &e))
		return 99;
	test_crashes("kill", 0);
	test_crashes("power", 1);
	test_crashes("data", 2);
	test_crashes("names", 3);
	for (unsigned seed = 4; seed < (crash_all() ? 24 : 6); seed++)
		test_crashes("mixed", seed);
	test_twice();
	test_left_out();
	test_each_left_out();
	test_lies();
	test_errors("full");
	test_errors("ENOSPC");
	test_errors("EIO");
	dl_layout_release(&layout);
	crash_done();
	return done_testing();
}
