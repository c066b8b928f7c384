/* The store: what is committed comes back whole, whatever happened. */
#include "state/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tap.h"
#include "base/file.h"
#include "faults.h"
#include "state/head.h"
#include "state/store_write.h"

static const char layout_text[] =
	"# name\tdtype\tshape\telements\tfragment\trule\n"
	"# format\t1\n"
	"a\tF32\t3x2\t6\t0\trda\n"
	"scalar\tF32\t-\t1\t0\tstat\n"
	"b\tBF16\t5\t5\t1\tmean\n"
	"void\tF32\t0x4\t0\t1\trda\n"
	"z\tI32\t2\t2\t2\tlast\n";
enum { P = 3, MOST = 7 };

static struct dl_layout layout;
static char folder[] = "/tmp/dl-store-XXXXXX";
static const char *store; /* folder/s */

static void must(int rc, const struct dl_err *e, const char *what)
{
	if (!rc)
		return;
	printf("Bail out! %s: %d %s\n", what, rc, e->text);
	exit(1);
}

/* The values of fragment p at version number n. */
static const float *values(uint32_t p, uint64_t n)
{
	static float v[MOST];

	for (uint32_t i = 0; i < MOST; i++)
		v[i] = (float)(100 * n + 10 * p + i);
	return v;
}

/* Its momentum, which begins at zero. */
static const float *momentum(uint32_t p, uint64_t n)
{
	static float v[MOST];

	for (uint32_t i = 0; i < MOST; i++)
		v[i] = n ? -(float)(100 * n + 10 * p + i) : 0;
	return v;
}

/* State that uses every field to its limits, at version 1.n of fragment p and
 * 1.0 of the others. */
static struct dl_sync_saved state(uint32_t p, uint64_t n)
{
	struct dl_sync_saved v = {.epoch = 1,
		.clock = n,
		.tokens = UINT64_MAX,
		.fragments = P,
		.learners = 2};

	v.fragment = dl_alloc_array(P, sizeof *v.fragment);
	for (uint32_t i = 0; i < P; i++) {
		v.fragment[i].version = (struct dl_version){1, i == p ? n : 0};
		v.fragment[i].step = i == p ? 24 * n : 0;
	}
	v.fragment[1].norms = 4;
	v.fragment[1].norm[0] = 0.1;
	v.fragment[1].norm[1] = DBL_MAX;
	v.fragment[1].norm[2] = 5e-324;
	v.learner = dl_alloc_array(2, sizeof *v.learner);
	strcpy(v.learner[0].name, "a.site-1");
	strcpy(v.learner[1].name, "b");
	for (int i = 0; i < 2; i++) {
		v.learner[i].instance = UINT64_MAX - (uint64_t)i;
		v.learner[i].merged = dl_alloc_array(P, sizeof(uint64_t));
		v.learner[i].merged[p] = n * ((uint64_t)i + 1);
	}
	return v;
}

static int same_state(
	const struct dl_sync_saved *a, const struct dl_sync_saved *b)
{
	int same = a->epoch == b->epoch && a->clock == b->clock &&
		   a->tokens == b->tokens && a->fragments == b->fragments &&
		   a->learners == b->learners;

	for (uint32_t p = 0; same && p < a->fragments; p++) {
		const struct dl_sync_saved_fragment *x = a->fragment + p;
		const struct dl_sync_saved_fragment *y = b->fragment + p;

		same = !dl_version_cmp(x->version, y->version) &&
		       x->step == y->step && x->norms == y->norms &&
		       !memcmp(x->norm, y->norm, sizeof x->norm);
	}
	for (size_t i = 0; same && i < a->learners; i++)
		same = !strcmp(a->learner[i].name, b->learner[i].name) &&
		       a->learner[i].instance == b->learner[i].instance &&
		       !memcmp(a->learner[i].merged, b->learner[i].merged,
			       P * sizeof(uint64_t));
	return same;
}

static void remove_tree(const char *path)
{
	char *command = dl_sprintf("rm -rf '%s'", path);

	if (system(command))
		exit(1);
	free(command);
}

static int create(struct dl_err *e)
{
	const struct dl_store_run run = {"demo", 24};
	float first[P][MOST];
	const float *v[P];
	struct dl_sync_saved s = state(0, 0);
	int rc;

	for (uint32_t p = 0; p < P; p++)
		v[p] = memcpy(first[p], values(p, 0), sizeof first[p]);
	rc = dl_store_create(store, &run, &layout, &s, v, e);
	dl_sync_saved_release(&s);
	return rc;
}

static void fresh(void)
{
	struct dl_err e;

	remove_tree(store);
	must(create(&e), &e, "create");
}

static struct dl_store *open_store(enum dl_store_mode mode)
{
	struct dl_store *s;
	struct dl_err e;

	must(dl_store_open(&s, store, mode, &e), &e, "open");
	return s;
}

/* What its updates owe, in commits of a run that has such. */
static const float *error(uint32_t p, uint64_t n)
{
	static float v[MOST];

	for (uint32_t i = 0; i < MOST; i++)
		v[i] = 1 / (float)(100 * n + 10 * p + i + 1);
	return v;
}

static int owes; /* commits are of such a run */

static int commit(struct dl_store *s, uint32_t p, uint64_t n, struct dl_err *e)
{
	struct dl_sync_saved v = state(p, n);
	int rc = dl_store_commit(s, p, values(p, n), momentum(p, n),
		owes ? error(p, n) : NULL, &v, e);

	dl_sync_saved_release(&v);
	return rc;
}

/* 1 when the error of p is that of version n; none at 0 and in other runs. */
static int holds_error(struct dl_store *s, uint32_t p, uint64_t n)
{
	size_t size = layout.fragment[p].elements * sizeof(float);
	float got[MOST];
	struct dl_err e;
	int rc = dl_store_load_error(s, p, got, &e);

	return owes && n ? !rc && !memcmp(got, error(p, n), size) : rc == DL_NO;
}

/* 1 when s holds state(p, n) and the arrays that go with it. */
static int holds(struct dl_store *s, uint32_t p, uint64_t n)
{
	struct dl_sync_saved v = state(p, n);
	int same = same_state(dl_store_saved(s), &v);

	dl_sync_saved_release(&v);
	for (uint32_t i = 0; same && i < P; i++) {
		size_t size = layout.fragment[i].elements * sizeof(float);
		uint64_t at = i == p ? n : 0;
		float got[MOST], push[MOST];
		struct dl_err e;

		same = !dl_store_load(s, i, got, push, &e) &&
		       !memcmp(got, values(i, at), size) &&
		       !memcmp(push, momentum(i, at), size) &&
		       holds_error(s, i, at);
	}
	return same;
}

/* Files below the store's folder, apart from folders. */
static int files_in(const char *sub)
{
	char *path = dl_sprintf("%s/%s", store, sub);
	DIR *d = opendir(path);
	struct dirent *entry;
	struct stat st;
	int n = 0;

	while (d && (entry = readdir(d)))
		n += !fstatat(dirfd(d), entry->d_name, &st, 0) &&
		     S_ISREG(st.st_mode);
	if (d)
		closedir(d);
	free(path);
	return n;
}

static int files(void)
{
	return files_in(".") + files_in("global") + files_in("momentum") +
	       files_in("error");
}

/* HEAD, layout.tsv, lock and two files a fragment. */
enum { FILES = 3 + 2 * P };

static void test_round_trip(void)
{
	struct dl_store *s;
	struct dl_sync_saved next = state(2, 1);
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	ok(holds(s, 0, 0), "what was created is there");
	ok(!strcmp(dl_store_run(s)->name, "demo") && dl_store_run(s)->h == 24 &&
			!strcmp(dl_store_layout(s)->hash, layout.hash),
		"run and layout too");
	ok(!commit(s, 2, 1, &e) && holds(s, 2, 1), "a commit shows at once");
	dl_store_close(s);
	s = open_store(DL_STORE_LOOK);
	ok(holds(s, 2, 1), "and after opening again");
	dl_store_close(s);
	ok(files() == FILES, "the version before is gone");

	s = open_store(DL_STORE_OWN);
	next.epoch = 2;
	for (uint32_t p = 0; p < P; p++)
		next.fragment[p].version.epoch = 2;
	must(dl_store_commit_saved(s, &next, &e), &e, "commit_saved");
	dl_store_close(s);
	s = open_store(DL_STORE_LOOK);
	ok(same_state(dl_store_saved(s), &next) &&
			!dl_store_load(s, 2, NULL, (float[MOST]){0}, &e),
		"the epoch rises and files keep their names");
	dl_store_close(s);
	dl_sync_saved_release(&next);
	ok(create(&e) == DL_CANTCREAT, "made once: %s", e.text);
}

static void test_refusals(void)
{
	struct dl_store *s = NULL;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	must(commit(s, 1, 5, &e), &e, "commit");
	ok(commit(s, 1, 5, &e) == DL_SOFTWARE && holds(s, 1, 5),
		"a version is committed once: %s", e.text);
	dl_store_close(s);
	s = open_store(DL_STORE_LOOK);
	ok(commit(s, 1, 6, &e) == DL_SOFTWARE, "looking commits nothing: %s",
		e.text);
	dl_store_close(s);
	ok(dl_store_open(&s, folder, DL_STORE_OWN, &e) == DL_NOINPUT && !s,
		"no store: %s", e.text);
}

static void test_owner(void)
{
	struct dl_store *s;
	int status;
	pid_t pid;

	fresh();
	s = open_store(DL_STORE_OWN);
	pid = fork();
	if (!pid) {
		struct dl_store *mine;
		struct dl_err e;
		char *who = dl_sprintf("process %ld", (long)getppid());
		int rc = dl_store_open(&mine, store, DL_STORE_OWN, &e);

		_exit(rc == DL_TEMPFAIL && strstr(e.text, who) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(status == 0, "a second owner is told who the first is");
	pid = fork();
	if (!pid) {
		struct dl_store *mine = open_store(DL_STORE_LOOK);

		_exit(holds(mine, 0, 0) ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	ok(status == 0, "looking needs no lock");
	dl_store_close(s);
}

/* Dies at the n-th call of a commit; returns 1 when it came that far. */
static int die_in_commit(int n)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		struct dl_store *s = open_store(DL_STORE_OWN);
		struct dl_err e;

		faults_arm(FAULT_DIE, n);
		_exit(commit(s, 1, 1, &e) ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 9;
}

static void test_crashes(void)
{
	int n, before = 0, after = 0, broken = 0;

	for (n = 1;; n++) {
		struct dl_store *s;
		struct dl_err e;
		int died;

		fresh();
		died = die_in_commit(n);
		s = open_store(DL_STORE_OWN);
		before += holds(s, 1, 0) && files() == FILES;
		after += holds(s, 1, 1) && files() == FILES + owes;
		broken += commit(s, 1, 2, &e) || !holds(s, 1, 2);
		dl_store_close(s);
		if (!died)
			break;
	}
	ok(before > 5 && after > 1 && before + after == n,
		"a crash leaves the old state (%d places) or the new (%d), "
		"and nothing else",
		before, after);
	ok(!broken, "the next commit goes on");
}

static void test_failures(void)
{
	int met = 1, kept = 0, told = 0, retried = 0, failed = 0;

	for (int n = 1; met; n++) {
		struct dl_store *s;
		struct dl_err e;
		int rc;

		fresh();
		s = open_store(DL_STORE_OWN);
		faults_arm(FAULT_FAIL, n);
		rc = commit(s, 1, 1, &e);
		met = faults_disarm() >= n;
		if (!rc) { /* only what removes old files may fail so */
			dl_store_close(s);
			continue;
		}
		failed++;
		told += (rc == DL_IOERR || rc == DL_CANTCREAT) &&
			strstr(e.text, store) && strstr(e.text, "space");
		kept += holds(s, 1, 0);
		retried += !commit(s, 1, 1, &e) && holds(s, 1, 1);
		dl_store_close(s);
		s = open_store(DL_STORE_OWN);
		retried -= !holds(s, 1, 1) || files() != FILES + owes;
		dl_store_close(s);
	}
	ok(failed > 5 && told == failed, "%d of %d failures named", told,
		failed);
	ok(kept == failed, "each leaves the old state (%d)", kept);
	ok(retried == failed, "and may be tried again (%d)", retried);
}

static void test_order(void)
{
	static const char once[] = "write write fsync rename:global fsync "
				   "write write fsync rename:momentum fsync "
				   "write fsync rename:HEAD fsync "
				   "unlink:global unlink:momentum";
	struct dl_store *s;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	faults_arm(FAULT_NONE, 0);
	must(commit(s, 0, 1, &e), &e, "commit");
	faults_disarm();
	dl_store_close(s);
	ok(!strcmp(faults_log(), once),
		"files, folders, HEAD, then what is gone: %s", faults_log());
}

static void test_order_of_errors(void)
{
	static const char first[] = "rename:momentum fsync fsync "
				    "write write fsync rename:error fsync "
				    "write fsync rename:HEAD fsync "
				    "unlink:global unlink:momentum";
	static const char next[] = "rename:momentum fsync "
				   "write write fsync rename:error fsync "
				   "write fsync rename:HEAD fsync "
				   "unlink:global unlink:momentum unlink:error";
	struct dl_store *s;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	faults_arm(FAULT_NONE, 0);
	must(commit(s, 0, 1, &e), &e, "commit");
	faults_disarm();
	ok(strstr(faults_log(), first) != NULL,
		"the folder, its name, the error, HEAD: %s", faults_log());
	faults_arm(FAULT_NONE, 0);
	must(commit(s, 0, 2, &e), &e, "commit");
	faults_disarm();
	dl_store_close(s);
	ok(strstr(faults_log(), next) != NULL, "then no folder: %s",
		faults_log());
}

/* A run whose updates have become full values owes nothing any more. */
static void test_paid(void)
{
	struct dl_store *s;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	must(commit(s, 0, 1, &e), &e, "commit");
	ok(holds(s, 0, 1) && files_in("error") == 1, "an error is kept");
	owes = 0;
	must(commit(s, 0, 2, &e), &e, "commit");
	ok(holds(s, 0, 2) && files_in("error") == 0, "until there is none");
	dl_store_close(s);
	s = open_store(DL_STORE_OWN);
	ok(holds(s, 0, 2), "nor after opening again");
	dl_store_close(s);
}

static void put(const char *name, const void *text, size_t n)
{
	char *path = dl_sprintf("%s/%s", store, name);
	struct dl_err e;

	must(dl_write_file(path, text, n, &e), &e, "put");
	free(path);
}

static void remove_file(const char *name)
{
	char *path = dl_sprintf("%s/%s", store, name);

	if (unlink(path))
		exit(1);
	free(path);
}

static int have(const char *name)
{
	char *path = dl_sprintf("%s/%s", store, name);
	int there = !access(path, F_OK);

	free(path);
	return there;
}

/* What a pin names stays as long as one pin names it. */
static void test_pins(void)
{
	struct dl_store *s;
	struct dl_pin *first, *second;
	struct dl_err e;
	int before;

	fresh();
	s = open_store(DL_STORE_OWN);
	before = files();
	first = dl_store_pin(s);
	must(commit(s, 1, 1, &e), &e, "commit");
	second = dl_store_pin(s);
	must(commit(s, 1, 2, &e) || commit(s, 1, 3, &e), &e, "commit");
	ok(dl_pin_saved(first)->fragment[1].version.number == 0 &&
			dl_pin_saved(second)->fragment[1].version.number == 1 &&
			!strcmp(dl_pin_run(first)->name, "demo"),
		"a pin is of its moment");
	ok(files() == before + 6 && have("global/1.1.0") &&
			have("error/1.1.1") && !have("global/1.1.2") &&
			have("global/1.1.3"),
		"files that a pin names stay, others go");
	dl_store_unpin(s, first);
	ok(!have("global/1.1.0") && have("global/0.1.0") &&
			have("global/1.1.1"),
		"the unpin removes what nobody names");
	first = dl_store_pin(s);
	dl_store_unpin(s, second);
	ok(!have("error/1.1.1") && files() == before + 1, "the error too");
	dl_store_unpin(s, first);
	ok(holds(s, 1, 3) && files() == before + 1,
		"what HEAD names is left alone");
	dl_store_close(s);
}

static void test_leftovers(void)
{
	static const char *const ours[] = {"global/0.1.7", "global/2.9.0",
		"momentum/1.1.7.tmp.123.4", "HEAD.tmp.7.0", "global/99.1.1"};
	static const char *const others[] = {"global/README", "tape", "HEADS"};
	int left = 0, kept = 0;

	fresh();
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		put(ours[i], "x", 1);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		put(others[i], "x", 1);
	dl_store_close(open_store(DL_STORE_LOOK));
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		left += have(ours[i]);
	ok(left == 5, "looking removes nothing");
	dl_store_close(open_store(DL_STORE_OWN));
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		left -= !have(ours[i]);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		kept += have(others[i]);
	ok(left == 0, "an owner removes what HEAD does not name");
	ok(kept == 3, "but no file that is not the store's");
}

static void read_file(const char *name, struct dl_buf *out)
{
	char *path = dl_sprintf("%s/%s", store, name);
	struct dl_err e;

	must(dl_read_file(path, 1 << 20, out, &e), &e, "read");
	free(path);
}

static int load_fails(struct dl_store *s, const char *fact, struct dl_err *e)
{
	float got[MOST];

	return dl_store_load(s, 0, got, NULL, e) == DL_DATA &&
	       strstr(e->text, "global/0.1.0") && strstr(e->text, fact);
}

static void test_damage(void)
{
	struct dl_buf b = DL_BUF_INIT;
	struct dl_store *s;
	struct dl_err e;
	int found = 0;

	fresh();
	s = open_store(DL_STORE_LOOK);
	read_file("global/0.1.0", &b);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 1;
		put("global/0.1.0", b.data, b.len);
		b.data[i] ^= 1;
		found += load_fails(s, "", &e);
	}
	ok(found == (int)b.len, "every flipped bit is found (%d of %zu)", found,
		b.len);
	put("global/0.1.0", b.data, b.len - 1);
	ok(load_fails(s, "ends too early", &e), "%s", e.text);
	dl_buf_byte(&b, 0);
	put("global/0.1.0", b.data, b.len);
	ok(load_fails(s, "bytes after the record", &e), "%s", e.text);
	read_file("momentum/0.1.0", &b);
	put("global/0.1.0", b.data, b.len);
	ok(load_fails(s, "not the bytes that HEAD names", &e), "%s", e.text);
	read_file("global/1.1.0", &b);
	put("global/0.1.0", b.data, b.len);
	ok(load_fails(s, "\"a\" of fragment 0 is missing", &e), "%s", e.text);
	remove_file("global/0.1.0");
	ok(load_fails(s, "missing", &e), "%s", e.text);
	dl_store_close(s);
	dl_buf_free(&b);
}

static void test_replaced(void)
{
	struct dl_store *look, *own;
	float got[MOST];
	struct dl_err e;

	fresh();
	look = open_store(DL_STORE_LOOK);
	own = open_store(DL_STORE_OWN);
	must(commit(own, 0, 1, &e), &e, "commit");
	ok(dl_store_load(look, 0, got, NULL, &e) == DL_TEMPFAIL, "%s", e.text);
	ok(!dl_store_load(look, 1, got, NULL, &e),
		"what was not replaced is still read");
	dl_store_close(look);
	dl_store_close(own);
}

/* The files of fragment 0 at version 1.n, unhashed, of a commit to come. */
static void write_unhashed(
	struct dl_store *s, uint64_t n, struct dl_store_write *w)
{
	struct dl_sync_saved v = state(0, n);
	struct dl_err e;

	*w = (struct dl_store_write){
		.content = {
			.data = {values(0, n), momentum(0, n)}, .unhashed = 1}};
	must(dl_store_write_begin(s, w, &v, &e), &e, "begin");
	must(dl_store_write(s, NULL, w, &e), &e, "write");
	dl_sync_saved_release(&v);
}

static void commit_unhashed(struct dl_store *s, uint64_t n)
{
	struct dl_sync_saved v = state(0, n);
	struct dl_store_write w;
	struct dl_err e;

	write_unhashed(s, n, &w);
	must(dl_store_write_end(s, &w, 1, &v, &e), &e, "end");
	dl_store_write_tidy(s, &w, 1);
	dl_sync_saved_release(&v);
}

/* Whether HEAD is that of a store whose files are hashed as they are written.
 */
static int head_is_whole(uint64_t n)
{
	struct dl_buf b = DL_BUF_INIT, whole = DL_BUF_INIT;
	struct dl_store *s;
	struct dl_err e;
	int same;

	read_file("HEAD", &b);
	fresh();
	s = open_store(DL_STORE_OWN);
	must(commit(s, 0, n, &e), &e, "commit");
	dl_store_close(s);
	read_file("HEAD", &whole);
	same = b.len == whole.len && !memcmp(b.data, whole.data, b.len);
	dl_buf_free(&b);
	dl_buf_free(&whole);
	return same;
}

static int head_says_null(void)
{
	struct dl_buf b = DL_BUF_INIT;
	int null;

	read_file("HEAD", &b);
	null = strstr(dl_buf_cstr(&b), "\"global\":null,\"momentum\":null") !=
	       NULL;
	dl_buf_free(&b);
	return null;
}

static void test_hashed_later(void)
{
	struct dl_store_hashes h = {.p = 0};
	atomic_int stop = 0;
	struct dl_store *s;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	ok(dl_store_hash_begin(s, &h) == DL_NO, "hashes are known at first");
	commit_unhashed(s, 1);
	ok(head_says_null() && holds(s, 0, 1), "a commit that is not hashed");
	dl_store_close(s);
	fresh();
	s = open_store(DL_STORE_OWN);
	commit_unhashed(s, 1);
	ok(!dl_store_hash_begin(s, &h), "they are to be found");
	stop = 1;
	ok(dl_store_hash(s, &h, &stop, &e) == DL_TEMPFAIL, "%s", e.text);
	stop = 0;
	must(dl_store_hash(s, &h, &stop, &e), &e, "hash");
	dl_store_hash_end(s, &h);
	ok(head_says_null(), "HEAD is not written for their sake");
	must(dl_store_hash_save(s, &e), &e, "save");
	dl_store_close(s);
	ok(head_is_whole(1), "in the end it says them");
}

static void test_hashed_too_late(void)
{
	struct dl_store_hashes h = {.p = 0};
	const atomic_int stop = 0;
	struct dl_store *s;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	commit_unhashed(s, 1);
	must(dl_store_hash_begin(s, &h), &e, "begin");
	commit_unhashed(s, 2);
	ok(dl_store_hash(s, &h, &stop, &e) == DL_NOINPUT, "%s", e.text);
	dl_store_hash_end(s, &h);
	must(dl_store_hash_save(s, &e), &e, "save");
	ok(head_says_null() && holds(s, 0, 2),
		"hashes of files that were replaced are not HEAD's");
	dl_store_close(s);
}

/* By the next owner, of one that was killed. */
static void test_hashed_at_open(void)
{
	struct dl_store *s;
	struct dl_err e;

	fresh();
	s = open_store(DL_STORE_OWN);
	commit_unhashed(s, 1);
	dl_store_close(s);
	s = open_store(DL_STORE_OWN);
	ok(head_says_null() && holds(s, 0, 1), "files without hashes are read");
	must(dl_store_hash_save(s, &e), &e, "save");
	dl_store_close(s);
	ok(head_is_whole(1), "and who has read them knows their hashes");
}

/* What a commit that fails has written, unless HEAD may name it. */
static void test_undone(void)
{
	struct dl_buf b = DL_BUF_INIT;
	struct dl_store_write w;
	struct dl_store *s;
	struct dl_err e;
	int before;

	fresh();
	s = open_store(DL_STORE_OWN);
	before = files();
	write_unhashed(s, 1, &w);
	dl_store_write_undo(s, &w, 1);
	ok(files() == before, "what was written is removed");
	must(dl_store_write(s, NULL, &w, &e), &e, "write");
	read_file("HEAD", &b);
	dl_buf_str(&b, "\n");
	put("HEAD", b.data, b.len);
	dl_store_write_undo(s, &w, 1);
	ok(files() == before + 2, "it stays when HEAD is another");
	dl_store_close(s);
	dl_buf_free(&b);
}

static void test_tidied(void)
{
	struct dl_sync_saved v = state(0, 1);
	struct dl_store_write w;
	struct dl_store *s;
	struct dl_err e;
	int before;

	fresh();
	s = open_store(DL_STORE_OWN);
	before = files();
	write_unhashed(s, 1, &w);
	must(dl_store_write_end(s, &w, 1, &v, &e), &e, "end");
	ok(files() == before + 2, "what a commit replaces is not waited for");
	dl_store_write_tidy(s, &w, 1);
	ok(files() == before, "and goes afterwards");
	dl_store_close(s);
	dl_sync_saved_release(&v);
}

/* HEAD with the first from replaced by to: how it is refused. */
static int head_with(const char *from, const char *to, struct dl_err *e)
{
	struct dl_buf b = DL_BUF_INIT, out = DL_BUF_INIT;
	struct dl_store *s = NULL;
	char *at;
	int rc;

	fresh();
	read_file("HEAD", &b);
	at = strstr(dl_buf_cstr(&b), from);
	if (!at) {
		printf("Bail out! HEAD has no %s\n", from);
		exit(1);
	}
	dl_buf_add(&out, b.data, (size_t)(at - (char *)b.data));
	dl_buf_str(&out, to);
	dl_buf_str(&out, at + strlen(from));
	put("HEAD", out.data, out.len);
	rc = dl_store_open(&s, store, DL_STORE_LOOK, e);
	dl_store_close(s);
	dl_buf_free(&b);
	dl_buf_free(&out);
	return rc;
}

static void test_strict_head(void)
{
	static const struct {
		const char *from, *to, *fact;
	} bad[] = {
		{"dl-store 1", "dl-store 2", "expected 'dl-store 1'"},
		{"\"run\":\"demo\"", "\"run\":\"../demo\"", "a good name"},
		{"\"run\":\"demo\"", "\"run\":\"demo\",\"run\":\"demo\"",
			"the key 'layout'"},
		{"\"run\":\"demo\",", "", "the key 'run'"},
		{"\"h\":24", "\"h\":0", "h is 0"},
		{"\"h\":24", "\"h\":24.0", "JSON byte"},
		{"\"h\":24", "\"h\":-24", "JSON byte"},
		{"\"epoch\":1", "\"epoch\":18446744073709551616", "JSON byte"},
		{"\"epoch\":1", "\"epoch\":0", "outside the run's epochs"},
		{"\"version\":\"1.0\"", "\"version\":\"1.00\"", "a version"},
		{"\"version\":\"1.0\"", "\"version\":\"2.0\"", "outside"},
		{"\"version\":\"1.0\"", "\"version\":\"1\"", "a version"},
		{"\"norms\":[0.1", "\"norms\":[-0.1", "below 0"},
		{"\"norms\":[0.1", "\"norms\":[1e999", "JSON byte"},
		{"\"a.site-1\"", "\".site-1\"", "a good name"},
		{"\"merged\":[0", "\"merged\":[0,0", "end of the array"},
		{"\"merged\":[0,0", "\"merged\":[0", "a number"},
		{"\"made\":\"1.0\"", "\"made\":\"1.1\"", "newer"},
		{"\"global\":\"", "\"global\":\"0", "shorter string"},
		{"\"momentum\":", "\"error\":", "the key 'momentum'"},
		{"\"},\n{\"made\"", "\",\"error\":\"\"},\n{\"made\"",
			"64 hexadecimal"},
		{"\"},\n{\"made\"", "\",\"errors\":\"\"},\n{\"made\"",
			"the key 'error'"},
		{"]}\n", "]}\nx", "JSON byte"},
	};
	struct dl_err e;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		ok(head_with(bad[i].from, bad[i].to, &e) == DL_DATA &&
				strstr(e.text, "/HEAD: ") &&
				strstr(e.text, bad[i].fact),
			"%s", e.text);
	ok(head_with("\"layout\":\"", "\"layout\":\"A", &e) == DL_DATA, "%s",
		e.text);
}

static void test_torn_head(void)
{
	struct dl_buf b = DL_BUF_INIT;
	struct dl_head h;
	struct dl_err e;
	int refused = 0;

	fresh();
	read_file("HEAD", &b);
	for (size_t n = 0; n < b.len - 1; n++) {
		refused += dl_head_parse(&h, b.data, n, &e) == DL_DATA;
		dl_head_release(&h);
	}
	ok(refused == (int)b.len - 1, "HEAD cut at any byte is refused");
	dl_buf_free(&b);
}

static void test_other_layout(void)
{
	struct dl_buf b = DL_BUF_INIT;
	struct dl_store *s;
	struct dl_err e;

	fresh();
	read_file("layout.tsv", &b);
	memcpy(strstr(dl_buf_cstr(&b), "mean"), "stat", 4);
	put("layout.tsv", b.data, b.len);
	ok(dl_store_open(&s, store, DL_STORE_LOOK, &e) == DL_DATA &&
			strstr(e.text, "not the layout"),
		"%s", e.text);
	dl_buf_free(&b);
}

int main(void)
{
	struct dl_err e;

	if (!mkdtemp(folder))
		return 99;
	store = dl_sprintf("%s/s", folder);
	must(dl_layout_parse(&layout, layout_text, sizeof layout_text - 1, &e),
		&e, "layout");
	test_round_trip();
	test_refusals();
	test_owner();
	test_crashes();
	test_failures();
	test_order();
	owes = 1;
	test_crashes();
	test_failures();
	test_order_of_errors();
	test_pins();
	test_paid();
	test_leftovers();
	test_damage();
	test_replaced();
	test_hashed_later();
	test_hashed_too_late();
	test_hashed_at_open();
	test_undone();
	test_tidied();
	test_strict_head();
	test_torn_head();
	test_other_layout();
	dl_layout_release(&layout);
	remove_tree(folder);
	return done_testing();
}
