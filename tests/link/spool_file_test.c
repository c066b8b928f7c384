/* The files of spools: what is not followed, limits, putting, locks. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "link/spool_file.h"
#include "tests/tap.h"

static char top[] = "spool_file_test.XXXXXX";
static int spool;

/* What renameat answers: 0 the truth; else that error, after it was done
 * (done) or not. */
static int lie, done;
int __real_renameat(int from, const char *a, int to, const char *b);
int __wrap_renameat(int from, const char *a, int to, const char *b);
int __wrap_renameat(int from, const char *a, int to, const char *b)
{
	if (!lie)
		return __real_renameat(from, a, to, b);
	if (done && __real_renameat(from, a, to, b))
		return -1;
	errno = lie;
	return -1;
}

static int put(const char *path, const char *text, struct dl_err *e)
{
	const struct iovec part[] = {
		{(void *)text, 1}, {(void *)(text + 1), strlen(text) - 1}};

	return dl_spool_put(spool, "ann.push", path, part, 2, e);
}

static int holds(const char *path, const char *text)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_err e;
	int same = !dl_spool_read(spool, path, 100, &out, &e) &&
		   !strcmp(dl_buf_cstr(&out), text);

	dl_buf_free(&out);
	return same;
}

static int is_there(const char *path)
{
	return !faccessat(spool, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

static void test_put(void)
{
	struct dl_err e = {0};

	ok(!put("new/ann/one", "first", &e) && holds("new/ann/one", "first"),
		"a file is put: %s", e.text);
	ok(!put("new/ann/one", "second", &e) && holds("new/ann/one", "second"),
		"and replaced");
	ok(!is_there("tmp/ann.push"), "nothing stays behind");
	ok(put("new/ben/one", "first", &e) == DL_CANTCREAT &&
			e.code == DL_CANTCREAT,
		"no folder: %s", e.text);
	symlinkat("../layout.tsv", spool, "tmp/ann.push");
	ok(!put("new/ann/two", "third", &e) && holds("layout.tsv", "plan") &&
			holds("new/ann/two", "third"),
		"a link left as temporary file is not followed");
	lie = ENOENT;
	done = 1;
	ok(!put("new/ann/one", "fourth", &e) && holds("new/ann/one", "fourth"),
		"a rename that worked and said it did not");
	done = 0;
	ok(put("new/ann/one", "fifth", &e) == DL_IOERR &&
			holds("new/ann/one", "fourth") &&
			!is_there("tmp/ann.push"),
		"one that did not: %s", e.text);
	lie = ENOSPC;
	ok(put("new/ann/one", "sixth", &e) == DL_IOERR, "none: %s", e.text);
	lie = 0;
}

static void test_open(void)
{
	struct dl_buf out = DL_BUF_INIT;
	struct dl_err e;
	struct stat st;
	int fd;

	ok(dl_spool_open_file(spool, "new/ann/three", &fd, &st, &e) ==
			DL_NOINPUT,
		"not there: %s", e.text);
	symlinkat("one", spool, "new/ann/link");
	ok(dl_spool_open_file(spool, "new/ann/link", &fd, NULL, &e) == DL_DATA,
		"a link: %s", e.text);
	symlinkat("ann", spool, "new/cat");
	ok(dl_spool_open_file(spool, "new/cat/one", &fd, NULL, &e) == DL_DATA,
		"a link on the way: %s", e.text);
	mkfifoat(spool, "new/ann/pipe", 0666);
	ok(dl_spool_open_file(spool, "new/ann/pipe", &fd, NULL, &e) == DL_DATA,
		"a pipe: %s", e.text);
	ok(dl_spool_open_file(spool, "new/ann", &fd, NULL, &e) == DL_DATA,
		"a folder: %s", e.text);
	ok(dl_spool_open_folder(spool, "layout.tsv", &fd, &e) == DL_DATA,
		"no folder: %s", e.text);
	ok(dl_spool_read(spool, "new/ann/two", 4, &out, &e) == DL_DATA &&
			!dl_spool_read(spool, "new/ann/two", 5, &out, &e) &&
			out.len == 5,
		"a limit");
	ok(dl_spool_open("nowhere", &fd, &e) == DL_NOINPUT, "no spool: %s",
		e.text);
	dl_buf_free(&out);
}

static void test_hash(void)
{
	char hash[DL_HASH_HEX], hex[DL_HASH_HEX];
	struct dl_hash h;
	struct dl_err e;
	int fd;

	dl_hash_init(&h);
	dl_hash_add(&h, "third", 5);
	dl_hash_hex(&h, hex);
	if (dl_spool_open_file(spool, "new/ann/two", &fd, NULL, &e))
		abort();
	ok(!dl_spool_hash(fd, 5, hash, &e) && !strcmp(hash, hex), "a hash");
	ok(dl_spool_hash(fd, 4, hash, &e) == DL_DATA &&
			dl_spool_hash(fd, 6, hash, &e) == DL_DATA,
		"another size: %s", e.text);
	close(fd);
}

/* The child holds the shared lock until it is told to go. */
static void test_collect(void)
{
	int ready[2], go[2], removed = 0, status, fd;
	struct dl_err e = {0};
	char c;
	pid_t pid;

	if (pipe(ready) || pipe(go))
		abort();
	pid = fork();
	if (!pid) {
		close(go[1]);
		if (dl_spool_open_locked(spool, "new/ann/one", &fd, NULL, &e))
			_exit(1);
		if (write(ready[1], "x", 1) != 1)
			_exit(2);
		_exit(read(go[0], &c, 1) ? 3 : 0);
	}
	if (read(ready[0], &c, 1) != 1)
		abort();
	ok(!dl_spool_collect(spool, "new/ann/one", &removed, &e) && !removed &&
			is_there("new/ann/one"),
		"a file that is read is not collected");
	close(go[1]);
	waitpid(pid, &status, 0);
	ok(!dl_spool_collect(spool, "new/ann/one", &removed, &e) && removed &&
			!is_there("new/ann/one"),
		"afterwards it is");
	ok(!dl_spool_collect(spool, "new/ann/one", &removed, &e) && removed,
		"one that is not there is gone");
	ok(dl_spool_open_locked(spool, "new/ann/one", &fd, NULL, &e) ==
			DL_NOINPUT,
		"and cannot be locked: %s", e.text);
}

static void test_list(void)
{
	struct dl_spool_names names;
	struct dl_err e;

	close(openat(spool, "new/ann/.lock", O_CREAT | O_WRONLY, 0666));
	ok(!dl_spool_list(spool, "new/ann", &names, &e) && names.n == 3 &&
			!strcmp(names.name[0], "link") &&
			!strcmp(names.name[1], "pipe") &&
			!strcmp(names.name[2], "two"),
		"names in order, no .lock");
	dl_spool_names_release(&names);
	ok(dl_spool_list(spool, "new/dan", &names, &e) == DL_NOINPUT &&
			!names.n,
		"no folder: %s", e.text);
	ok(!dl_spool_remove(spool, "new/ann/two", &e) &&
			!dl_spool_remove(spool, "new/ann/two", &e) &&
			!dl_spool_remove(spool, "new/dan/two", &e) &&
			!is_there("new/ann/two"),
		"removed, once and again");
}

/* A name is held by one process at a time, and said whose it is. */
static void test_lock(void)
{
	int fd = -1, other = -1, status;
	struct dl_err e = {0};
	pid_t pid;

	ok(!dl_spool_lock(spool, "eve", &fd, &e) && is_there("new/eve/.lock"),
		"a name: %s", e.text);
	pid = fork();
	if (!pid)
		_exit(dl_spool_lock(spool, "eve", &other, &e) == DL_NOPERM &&
					other == -1 &&
					strstr(e.text, " process ") != NULL
				? 0
				: 1);
	waitpid(pid, &status, 0);
	ok(!status, "another process does not get it");
	ok(!dl_spool_lock(spool, "eve", &fd, &e), "it is held still");
	unlinkat(spool, "new/eve/.lock", 0);
	ok(!dl_spool_lock(spool, "eve", &fd, &e) && is_there("new/eve/.lock"),
		"and got again where it is lost");
	dl_spool_unlock(&fd);
	pid = fork();
	if (!pid)
		_exit(dl_spool_lock(spool, "eve", &other, &e));
	waitpid(pid, &status, 0);
	ok(!status, "free again");
}

static void clean(void)
{
	char *command = dl_sprintf("rm -rf %s", top);

	ok(!system(command), "cleaned up");
	free(command);
}

int main(void)
{
	struct dl_err e = {0};

	if (!mkdtemp(top) || dl_spool_open(top, &spool, &e))
		abort();
	ok(!dl_spool_make_folder(spool, "tmp", &e) &&
			!dl_spool_make_folder(spool, "new", &e) &&
			!dl_spool_make_folder(spool, "new/ann", &e) &&
			!dl_spool_make_folder(spool, "new/ann", &e),
		"folders are made: %s", e.text);
	if (put("layout.tsv", "plan", &e))
		abort();
	ok(dl_spool_make_folder(spool, "layout.tsv", &e) == DL_DATA,
		"not over a file: %s", e.text);
	test_put();
	test_open();
	test_hash();
	test_collect();
	test_list();
	test_lock();
	close(spool);
	clean();
	return done_testing();
}
