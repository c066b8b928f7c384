/*
 * How often a second each program can start, say its version and end, beside
 * an empty one (empty.c): 100 a second are 10 ms each. Libraries are those that
 * it loads, the C library included.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/spawn.h"
#include "bench.h"

enum { STARTS = 2 }; /* a turn */

static const char *const programs[] = {"dl-frag", "dl-join", "dl-key",
	"dl-learn", "dl-quant", "dl-sim", "dl-stat", "dl-sync", "dl-train"};

static void start(const char *program)
{
	char *path = dl_sprintf("./%s", program), version[] = "-V";
	char *const command[] = {path, version, NULL};
	extern char **environ;
	posix_spawn_file_actions_t files;
	struct dl_err e;
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	for (int i = 0; i < STARTS; i++) {
		bench_need(
			!dl_spawn(command, environ, &files, &pid, &e), e.text);
		bench_need(waitpid(pid, &status, 0) == pid && !status, path);
	}
	posix_spawn_file_actions_destroy(&files);
	free(path);
}

static void product(void *ctx)
{
	start(ctx);
}

static void empty(void *ctx)
{
	(void)ctx;
	start("tests/bench/empty");
}

static int libraries(const char *program)
{
	char *command = dl_sprintf("ldd ./%s | grep -c '=>'", program);
	FILE *f = popen(command, "r");
	int n = 0;

	bench_need(f && fscanf(f, "%d", &n) == 1 && !pclose(f), command);
	free(command);
	return n;
}

int main(void)
{
	const struct bench b = {
		.unit = "1/s", .amount = STARTS, .turns = BENCH_MOST};

	for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
		bench_compare(&b, product, empty, (void *)programs[i],
			"start %s, %d libraries", programs[i],
			libraries(programs[i]));
	return 0;
}
