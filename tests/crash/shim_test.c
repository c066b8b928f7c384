/* The crash shim itself: known sequences of calls, and what is left of them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../tap.h"
#include "base/file.h"
#include "crash.h"

/* ---- what runs below the shim ------------------------------------------ */

static int open_new(const char *name)
{
	return open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
}

static void put(const char *name, const char *text, int sync)
{
	int fd = open_new(name);

	if (fd < 0 || write(fd, text, strlen(text)) < 0 || (sync && fsync(fd)))
		exit(1);
	close(fd);
}

static void sync_folder(const char *name)
{
	struct dl_err e;

	if (dl_fsync_folder(name, &e))
		exit(1);
}

/* Something that lasts, to begin with: "old" and "gone" in the root. */
static void begin(void)
{
	put("old", "before", 1);
	put("gone", "here", 1);
	sync_folder(".");
}

static void replace(void)
{
	begin();
	put("new", "after", 1);
	if (rename("new", "old"))
		exit(1);
	sync_folder(".");
}

static void no_file_sync(void)
{
	begin();
	put("new", "after", 0);
	if (rename("new", "old"))
		exit(1);
	sync_folder(".");
	unlink("gone");
}

static void no_folder_sync(void)
{
	begin();
	put("new", "after", 1);
	if (rename("new", "old") || unlink("gone"))
		exit(1);
	unlink("nothing");
}

static void overwrite(void)
{
	int fd;

	begin();
	fd = open("old", O_RDWR | O_APPEND);
	if (pwrite(fd, " and on", 7, 6) != 7 || fsync(fd) ||
		pwrite(fd, " and on", 7, 13) != 7 || ftruncate(fd, 2))
		exit(1);
	unlink("nothing");
}

static void folders(void)
{
	begin();
	if (mkdir("a", 0777) || mkdir("a/b", 0777))
		exit(1);
	put("a/b/c", "deep", 1);
	sync_folder("a/b");
	sync_folder("a");
	if (mkdir("d", 0777))
		exit(1);
	sync_folder(".");
	if (rename("a/b/c", "d/c") || rmdir("a/b"))
		exit(1);
	sync_folder("d");
	unlink("nothing");
}

static void links(void)
{
	begin();
	if (link("old", "hard") || symlink("old", "soft"))
		exit(1);
	sync_folder(".");
	if (unlink("soft") || unlink("hard") || link("gone", "soft"))
		exit(1);
	unlink("nothing");
}

static void gathered(void)
{
	char text[] = "123456";
	struct iovec iov[3] = {{text, 2}, {text, 0}, {text + 2, 4}};
	int fd = open_new("v");

	if (writev(fd, iov, 3) != 6)
		exit(1);
	if (pwrite(fd, "ab", 2, 2) != 2)
		exit(1);
}

static void lied_to(void)
{
	begin();
	put("new", "after", 1);
	if (!rename("new", "old") || errno != ENOENT)
		exit(1);
	put("new", "later", 1);
	exit(rename("new", "old") ? 2 : 0);
}

/* How a full disk is met: one letter a call. */
static void fill(void)
{
	int fd;

	begin();
	fd = open_new("new");
	putchar(fd < 0 ? 'c' : 'C');
	printf("%d", (int)write(fd, "abcd", 4));
	putchar(write(fd, "abcd", 4) < 0 ? 'w' : 'W');
	putchar(fsync(fd) && errno == ENOSPC ? 's' : 'S');
	putchar(unlink("gone") ? 'u' : 'U');
	putchar(mkdir("folder", 0777) ? 'm' : 'M');
}

static void *write_some(void *name)
{
	put(name, "x", 1);
	return NULL;
}

static void threads(void)
{
	static const char *const name[] = {"t1", "t2", "t3", "t4"};
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(
			&t[i], NULL, write_some, (void *)(uintptr_t)name[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void unseen(void)
{
	char name[] = "../outside-XXXXXX";
	int fd = mkstemp(name), pipes[2];

	put(name, "x", 1);
	unlink(name);
	if (fd < 0 || pipe(pipes) || write(pipes[1], "x", 1) != 1)
		exit(1);
	mkdir("..", 0777);
	close(open("old", O_RDONLY | O_CREAT, 0666));
	close(open("old", O_RDONLY | O_CREAT, 0666));
}

static const struct sequence {
	const char *name;
	void (*run)(void);
} sequences[] = {{"replace", replace}, {"no_file_sync", no_file_sync},
	{"no_folder_sync", no_folder_sync}, {"overwrite", overwrite},
	{"folders", folders}, {"links", links}, {"gathered", gathered},
	{"lied_to", lied_to}, {"fill", fill}, {"threads", threads},
	{"unseen", unseen}};

static int run_sequence(void *name)
{
	size_t i = 0;

	while (strcmp(sequences[i].name, name) != 0)
		i++;
	if (chdir(crash_root_folder()))
		return 99;
	sequences[i].run();
	fflush(stdout);
	return 0;
}

/* ---- and what it looks like afterwards --------------------------------- */

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "name=content" of all below path, folders as "name/", in order. */
static void describe(const char *path, const char *prefix, struct dl_buf *out)
{
	DIR *d = opendir(path);
	struct dirent *entry;
	char *name[16];
	size_t n = 0;

	while (d && (entry = readdir(d)))
		if (*entry->d_name != '.' && n < 16)
			name[n++] = dl_strdup(entry->d_name);
	closedir(d);
	qsort(name, n, sizeof *name, by_name);
	for (size_t i = 0; i < n; i++) {
		char *inner = dl_sprintf("%s/%s", path, name[i]);
		char *shown = dl_sprintf("%s%s", prefix, name[i]);
		struct dl_buf text = DL_BUF_INIT;
		struct stat st;

		dl_buf_printf(out, "%s%s", out->len ? " " : "", shown);
		if (!stat(inner, &st) && S_ISDIR(st.st_mode)) {
			char *deeper = dl_sprintf("%s/", shown);

			dl_buf_str(out, "/");
			describe(inner, deeper, out);
			free(deeper);
		} else {
			dl_read_file(inner, 100, &text, NULL);
			dl_buf_printf(out, "=%s", dl_buf_cstr(&text));
		}
		dl_buf_free(&text);
		free(inner);
		free(shown);
		free(name[i]);
	}
}

/* Runs a sequence with that plan; what is left of it. The caller's until the
 * next. */
static const char *left(const char *sequence, const struct crash *plan)
{
	static struct dl_buf text;

	crash_clean();
	crash_run(plan, run_sequence, (void *)(uintptr_t)sequence, NULL);
	dl_buf_clear(&text);
	describe(crash_root_folder(), "", &text);
	return dl_buf_cstr(&text);
}

static void leaves(
	const char *sequence, const char *what, unsigned at, const char *expect)
{
	struct crash plan = {.what = what, .at = at};
	const char *got = left(sequence, &plan);

	ok(!strcmp(got, expect), "%s, %s at call %u: %s", sequence, what, at,
		got);
}

/* begin makes 7 calls. */
static void test_kill(void)
{
	leaves("replace", "kill", 8, "gone=here old=before");
	leaves("replace", "kill", 9, "gone=here new=af old=before");
	leaves("replace", "kill", 10, "gone=here new=after old=before");
	leaves("replace", "kill", 12, "gone=here old=after");
	leaves("replace", "kill", 13, "gone=here old=after");
	leaves("gathered", "kill", 2, "v=123");
	leaves("gathered", "kill", 3, "v=12a456");
}

static void test_power(void)
{
	leaves("replace", "power", 1, "");
	leaves("replace", "power", 7, "");
	leaves("replace", "power", 8, "gone=here old=before");
	leaves("replace", "power", 12, "gone=here old=before");
	leaves("replace", "data", 10, "gone=here new= old=before");
	leaves("replace", "data", 12, "gone=here old=after");
	leaves("replace", "names", 12, "gone=here old=before");
	leaves("no_file_sync", "power", 11, "gone=here old=before");
	leaves("no_file_sync", "data", 11, "gone=here old=");
	leaves("no_file_sync", "power", 12, "gone=here old=");
	leaves("no_folder_sync", "power", 13, "gone=here old=before");
	leaves("no_folder_sync", "data", 13, "old=after");
	leaves("overwrite", "power", 10, "gone=here old=before and on");
	leaves("overwrite", "power", 9, "gone=here old=before");
	leaves("overwrite", "kill", 12, "gone=here old=be");
	leaves("overwrite", "power", 12, "gone=here old=before and on");
	leaves("folders", "power", 13, "gone=here old=before");
	leaves("folders", "power", 17,
		"a/ a/b/ a/b/c=deep d/ gone=here old=before");
	leaves("folders", "power", 20,
		"a/ a/b/ a/b/c=deep d/ d/c=deep gone=here old=before");
	leaves("folders", "kill", 19, "a/ d/ d/c=deep gone=here old=before");
	leaves("links", "power", 14,
		"gone=here hard=before old=before soft=before");
	leaves("links", "kill", 14, "gone=here old=before soft=here");
}

static void test_mixed(void)
{
	int before = 0, after = 0, other = 0;

	for (unsigned seed = 0; seed < 12; seed++) {
		struct crash plan = {.what = "mixed", .at = 12, .seed = seed};
		const char *got = left("replace", &plan);
		int old = !strcmp(got, "gone=here old=before") ||
			  !strcmp(got, "gone=here new=after old=before");

		before += old;
		after += !strcmp(got, "gone=here old=after");
		other += !old && strcmp(got, "gone=here old=after") != 0;
	}
	ok(before && after && !other,
		"a mixed power cut leaves this (%d) or that (%d)", before,
		after);
}

static void test_skip(void)
{
	struct crash plan = {.what = "power", .at = 8, .skip = "*/gone"};

	ok(!strcmp(left("replace", &plan), "gone= old=before"),
		"a sync left out is missed");
	plan.skip = "3";
	ok(!strcmp(left("replace", &plan), ""),
		"and may be named by its number");
}

static void test_errors(void)
{
	struct crash plan = {.what = "full", .at = 9};
	char fill_up[] = "fill", lie[] = "lied_to";
	struct dl_buf out = DL_BUF_INIT;

	crash_clean();
	crash_run(&plan, run_sequence, fill_up, &out);
	ok(!strcmp(dl_buf_cstr(&out), "C2wsUm"), "a full disk: %s",
		dl_buf_cstr(&out));
	plan.what = "EIO";
	crash_clean();
	crash_run(&plan, run_sequence, fill_up, &out);
	ok(!strcmp(dl_buf_cstr(&out), "C-1WSUM"), "one error: %s",
		dl_buf_cstr(&out));
	plan.what = "lie";
	plan.at = 11;
	ok(crash_run(&plan, run_sequence, lie, NULL) == 0,
		"one rename that lies");
	plan.at = 0;
	ok(crash_run(&plan, run_sequence, lie, NULL) == 2, "all of them");
	dl_buf_free(&out);
}

static unsigned calls(const char *sequence, const char *call)
{
	crash_clean();
	return crash_count(run_sequence, (void *)(uintptr_t)sequence, call);
}

static void test_count(void)
{
	ok(calls("replace", "") == 12, "calls are counted");
	ok(calls("replace", "sync") == 5, "syncs too");
	ok(calls("threads", "") == 12, "in all threads");
	ok(calls("unseen", "") == 1, "only where something changes below");
}

int main(int argc, char **argv)
{
	(void)argc;
	crash_begin(argv);
	crash_folder();
	test_kill();
	test_power();
	test_mixed();
	test_skip();
	test_errors();
	test_count();
	crash_done();
	return done_testing();
}
