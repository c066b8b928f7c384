#include "crash.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

static char folder[] = "/tmp/dl-crash-XXXXXX";
static char *root;

_Noreturn static void give_up(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(99);
}

const char *crash_folder(void)
{
	if (root)
		return folder;
	if (!mkdtemp(folder))
		give_up("mkdtemp");
	root = dl_sprintf("%s/root", folder);
	if (mkdir(root, 0777))
		give_up(root);
	return folder;
}

const char *crash_root_folder(void)
{
	crash_folder();
	return root;
}

static int remove_one(
	const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		give_up(path);
}

void crash_clean(void)
{
	char *shadow = dl_sprintf("%s.shadow", crash_root_folder());

	remove_tree(root);
	remove_tree(shadow);
	if (mkdir(root, 0777))
		give_up(root);
	free(shadow);
}

void crash_done(void)
{
	remove_tree(folder);
	free(root);
}

static void put(const char *name, const char *value)
{
	if (value ? setenv(name, value, 1) : unsetenv(name))
		give_up(name);
}

static void put_number(const char *name, unsigned value)
{
	char text[16];

	snprintf(text, sizeof text, "%u", value);
	put(name, text);
}

static void set_plan(const struct crash *plan)
{
	const char *build = getenv("abs_top_builddir");
	char *shim = dl_sprintf("%s/tests/crash/shim.so", build ? build : ".");

	put("LD_PRELOAD", shim);
	put("DL_CRASH_ROOT", root);
	put("DL_CRASH_DO", plan->what);
	put("DL_CRASH_SKIP", plan->skip);
	put("DL_CRASH_LOG", plan->log);
	put_number("DL_CRASH_AT", plan->at);
	put_number("DL_CRASH_SEED", plan->seed);
	free(shim);
}

_Noreturn static void become(
	const struct crash *plan, const char *const argv[], const int fd[2])
{
	if (dup2(fd[1], STDOUT_FILENO) < 0 || close(fd[0]) || close(fd[1]))
		_exit(99);
	set_plan(plan);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(99);
}

static void take(int fd, struct dl_buf *out)
{
	ssize_t n;

	do {
		dl_buf_reserve(out, 4096);
		n = read(fd, out->data + out->len, 4096);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
}

int crash_run(
	const struct crash *plan, const char *const argv[], struct dl_buf *out)
{
	struct dl_buf none = DL_BUF_INIT;
	int fd[2], status;
	pid_t pid;

	if (pipe(fd))
		give_up("pipe");
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (!pid)
		become(plan, argv, fd);
	close(fd[1]);
	if (out)
		dl_buf_clear(out);
	take(fd[0], out ? out : &none);
	dl_buf_free(&none);
	close(fd[0]);
	if (waitpid(pid, &status, 0) != pid)
		give_up("waitpid");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return CRASHED;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 99)
		give_up(argv[0]);
	return WEXITSTATUS(status);
}

unsigned crash_count(const char *const argv[], const char *call)
{
	char *log = dl_sprintf("%s/log", crash_folder());
	struct crash plan = {.log = log};
	struct dl_buf text = DL_BUF_INIT;
	char *word = dl_sprintf(" %s ", call);
	unsigned n = 0;
	struct dl_err e;

	if (crash_run(&plan, argv, NULL) ||
		dl_read_file(log, 1 << 24, &text, &e))
		give_up(log);
	for (const char *at = dl_buf_cstr(&text); *at;
		at = strchr(at, '\n') + 1)
		n += !strncmp(strchr(at, ' '), word, strlen(word)) || !*call;
	unlink(log);
	dl_buf_free(&text);
	free(word);
	free(log);
	return n;
}

int crash_all(void)
{
	return getenv("DL_CRASH_ALL") != NULL;
}
