#include "gpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/spawn.h"
#include "bench.h"

struct gpt {
	FILE *talk;
	pid_t pid;
	double memory;
};

static double hear(struct gpt *g)
{
	double x = 0;

	bench_need(fscanf(g->talk, "%lf", &x) == 1, "gpt.py");
	return x;
}

/* Of python3, the system's: Debian's PyTorch knows no other. */
static void spawn(struct gpt *g, unsigned threads, int end)
{
	const char *folder = getenv("BENCH_FOLDER");
	char sh[] = "sh", option[] = "-c";
	char *line = dl_sprintf(
		"MALLOC_TRIM_THRESHOLD_=1000000000000 MALLOC_MMAP_MAX_=0 "
		"OMP_WAIT_POLICY=passive OMP_NUM_THREADS=%u "
		"exec /usr/bin/python3 '%s/gpt.py' %u",
		threads, folder ? folder : "tests/bench", threads);
	char *const command[] = {sh, option, line, NULL};
	extern char **environ;
	posix_spawn_file_actions_t files;
	struct dl_err e;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, end, 0);
	posix_spawn_file_actions_adddup2(&files, end, 1);
	bench_need(!dl_spawn(command, environ, &files, &g->pid, &e), e.text);
	posix_spawn_file_actions_destroy(&files);
	free(line);
}

struct gpt *gpt_new(unsigned threads)
{
	struct gpt *g;
	int ends[2];

	if (system("/usr/bin/python3 -c 'import torch' 2>/dev/null"))
		return NULL;
	g = dl_alloc(sizeof *g);
	bench_need(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
		"socketpair");
	spawn(g, threads, ends[1]);
	close(ends[1]);
	g->talk = fdopen(ends[0], "r");
	bench_need(g->talk != NULL, "fdopen");
	g->memory = hear(g);
	return g;
}

void gpt_free(struct gpt *g)
{
	if (!g)
		return;
	fclose(g->talk);
	waitpid(g->pid, NULL, 0);
	free(g);
}

double gpt_memory(const struct gpt *g)
{
	return g->memory;
}

double gpt_step(struct gpt *g)
{
	bench_need(dprintf(fileno(g->talk), "\n") == 1, "gpt.py");
	return hear(g);
}
