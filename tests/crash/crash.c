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

void crash_begin(char **argv)
{
	const char *build = getenv("abs_top_builddir");
	const char *loaded = getenv("LD_PRELOAD");
	char *shim = dl_sprintf("%s/tests/crash/shim.so", build ? build : ".");

	if (!loaded || strcmp(loaded, shim) != 0) {
		setenv("LD_PRELOAD", shim, 1);
		/* The shim comes before its runtime, and may. */
		setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
		execv("/proc/self/exe", argv);
		give_up(shim);
	}
	free(shim);
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
	put("DL_CRASH_ROOT", plan ? root : NULL);
	put("DL_CRASH_DO", plan ? plan->what : NULL);
	put("DL_CRASH_SKIP", plan ? plan->skip : NULL);
	put("DL_CRASH_LOG", plan ? plan->log : NULL);
	put_number("DL_CRASH_AT", plan ? plan->at : 0);
	put_number("DL_CRASH_SEED", plan ? plan->seed : 0);
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

/* The shim reads its plan as the process is made. */
static pid_t start(const struct crash *plan)
{
	pid_t pid;

	fflush(stdout);
	set_plan(plan);
	pid = fork();
	if (pid < 0)
		give_up("fork");
	if (pid)
		set_plan(NULL);
	return pid;
}

int crash_run(const struct crash *plan, int (*run)(void *arg), void *arg,
	struct dl_buf *out)
{
	struct dl_buf none = DL_BUF_INIT;
	int fd[2], status;
	pid_t pid;

	crash_folder();
	if (pipe(fd))
		give_up("pipe");
	pid = start(plan);
	if (!pid) {
		if (dup2(fd[1], STDOUT_FILENO) < 0 || close(fd[0]) ||
			close(fd[1]))
			_exit(99);
		_exit(run(arg));
	}
	close(fd[1]);
	if (out)
		dl_buf_clear(out);
	take(fd[0], out ? out : &none);
	dl_buf_free(&none);
	close(fd[0]);
	if (waitpid(pid, &status, WUNTRACED) != pid)
		give_up("waitpid");
	if (WIFSTOPPED(status)) {
		plan->look();
		if (kill(pid, SIGCONT) || waitpid(pid, &status, 0) != pid)
			give_up("waitpid");
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return CRASHED;
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 99)
		give_up("what was to be crashed");
	return WEXITSTATUS(status);
}

unsigned crash_count(int (*run)(void *arg), void *arg, const char *call)
{
	char *log = dl_sprintf("%s/log", crash_folder());
	char *word = dl_sprintf(" %s ", call);
	struct crash plan = {.log = log};
	struct dl_buf text = DL_BUF_INIT;
	unsigned n = 0;
	struct dl_err e;

	if (crash_run(&plan, run, arg, NULL) ||
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
