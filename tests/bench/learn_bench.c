/*
 * What a learner takes from its trainer: dl-train with 10 million parameters,
 * on one thread, under dl-learn and a syncer that are there for it alone, with
 * a fragment a step (H = 24). The time lost between steps, by the trainer's own
 * clock, beside 1 ms a step, which is a hundredth of a step of 100 ms; and its
 * steps beside those of the same trainer alone, which has the machine to
 * itself. Everything is in memory (/dev/shm), and warm-up counts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "bench.h"

enum { STEPS = 120, TURNS = 5 };

static char folder[] = "/dev/shm/learn-bench-XXXXXX"; /* removed in the end */
static int made;

/* What a trainer says that it took. */
struct took {
	double steps, seconds, lost;
};

static void run(const char *command)
{
	bench_need(!system(command), command);
}

static void clean(void)
{
	char *command = dl_sprintf("rm -rf '%s'", folder);

	if (made && system(command))
		fprintf(stderr, "bench: %s is left\n", folder);
	free(command);
}

/* dl-train run -v ends with "dl-train: N steps in X s", and a learner's goes on
 * ", Y s of it (Z%) between steps". */
static struct took read_took(void)
{
	struct took t = {0, 0, 0};
	FILE *f = fopen("said", "r");
	char *line = NULL;
	size_t room = 0;

	bench_need(f != NULL, "said");
	while (getline(&line, &room, f) > 0)
		sscanf(line, "dl-train: %lf steps in %lf s, %lf s of it",
			&t.steps, &t.seconds, &t.lost);
	bench_need(t.steps > 0, "dl-train says nothing of its steps");
	fclose(f);
	free(line);
	return t;
}

static struct took learn(void)
{
	run("rm -rf store\n"
	    "$BENCH_TOOLS/dl-sync serve -q --store store --listen unix:link "
	    "--fragments 24 -H 24 --steps $BENCH_STEPS "
	    "start/model.safetensors & sync=$!\n"
	    "$BENCH_TOOLS/dl-learn -q unix:link -- "
	    "$BENCH_TOOLS/dl-train run -v -b 2 start text 2>said && "
	    "wait $sync");
	return read_took();
}

static void lost(void *ctx)
{
	struct took t = learn();

	(void)ctx;
	bench_took(t.lost / t.steps);
}

static void hundredth(void *ctx)
{
	(void)ctx;
	bench_took(1e-3);
}

static void learner(void *ctx)
{
	struct took t = learn();

	(void)ctx;
	bench_took(t.seconds / t.steps);
}

static void alone(void *ctx)
{
	struct took t;

	(void)ctx;
	run("$BENCH_TOOLS/dl-train run -v -b 2 --steps $BENCH_STEPS "
	    "--save state start text 2>said");
	t = read_took();
	bench_took(t.seconds / t.steps);
}

static void begin(void)
{
	char here[4000], steps[16];

	snprintf(steps, sizeof steps, "%d", STEPS);
	bench_need(getcwd(here, sizeof here) &&
			   !setenv("BENCH_TOOLS", here, 1) &&
			   !setenv("BENCH_STEPS", steps, 1),
		"the current folder");
	atexit(clean);
	made = mkdtemp(folder) != NULL;
	bench_need(made && !chdir(folder), folder);
	run("$BENCH_TOOLS/dl-train init -q -L 8 -H 5 -d 320 -c 128 start && "
	    "head -c 1000000 /dev/urandom >text");
}

int main(void)
{
	const struct bench b = {.unit = "steps/s", .amount = 1, .turns = TURNS};
	const struct bench between = {
		.unit = "1/s", .amount = 1, .turns = TURNS};

	begin();
	bench_compare(&between, lost, hundredth, NULL,
		"time lost between steps, 10M, beside 1 ms");
	bench_compare(&b, learner, alone, NULL, "steps under dl-learn, alone");
	bench_need(!chdir(getenv("BENCH_TOOLS")), "the current folder");
	return 0;
}
