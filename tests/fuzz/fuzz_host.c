/*
 * Any bytes from a trainer to its learner, at once and in pieces: the same
 * events in an order that dl-trainer(7) allows, and one end. The trainer is no
 * process here: its end of the socket is the input's.
 */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz.h"
#include "train/host.h"
#include "train/line.h"
#include "train/spawn.h"

enum { LONGEST = 65536, NOBODY = INT_MAX };

/* The trainer's end, and whether it has exited. */
static int voice, exited;

static struct dl_loop loop = DL_LOOP_INIT;

int __wrap_dl_trainer_spawn(char *const *command, const char *const *more,
	int talk, pid_t *pid, struct dl_err *e);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
pid_t __wrap_waitpid(pid_t pid, int *status, int options);

int __wrap_dl_trainer_spawn(char *const *command, const char *const *more,
	int talk, pid_t *pid, struct dl_err *e)
{
	(void)command;
	(void)more;
	(void)e;
	voice = fcntl(talk, F_DUPFD_CLOEXEC, 0);
	exited = 0;
	*pid = NOBODY;
	return 0;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	(void)type;
	(void)options;
	info->si_pid = exited ? (pid_t)id : 0;
	return 0;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int options)
{
	(void)options;
	if (status)
		*status = 0;
	return pid;
}

/* What a learner saw, and what it waits for. */
struct seen {
	uint64_t ready, steps, answers, tokens;
	unsigned waiting;
	int training, dead;
	struct dl_err why;
};

static void go(struct dl_host *h, struct seen *s)
{
	dl_host_say(h, "go");
	s->training = 1;
}

static void take(struct dl_host *h, struct seen *s, struct dl_host_event *ev)
{
	switch (ev->kind) {
	case DL_HOST_READY:
		if (s->ready++)
			abort();
		dl_host_say(h, "load model.safetensors");
		s->waiting = 1;
		break;
	case DL_HOST_STEP:
		if (!s->training || isinf(ev->loss))
			abort();
		s->training = 0;
		s->steps++;
		s->tokens += ev->tokens;
		dl_host_say(h, "send 0 0.new");
		dl_host_say(h, "apply 0 0.new blend 0.5");
		dl_host_ask(h, "export state");
		s->waiting = 3;
		break;
	case DL_HOST_ANSWER:
	case DL_HOST_REFUSED:
		if (!s->waiting--)
			abort();
		s->answers++;
		if (!s->waiting)
			go(h, s);
		break;
	case DL_HOST_DIED:
		if (ev->wanted || !ev->err.text[0])
			abort();
		s->dead = 1;
		s->why = ev->err;
		break;
	}
}

static struct seen talk(
	struct dl_host *h, const uint8_t *data, size_t n, size_t piece)
{
	struct dl_host_event ev;
	struct seen s = {0};
	size_t part;

	if (dl_host_start(h, NULL))
		abort();
	for (; n; data += part, n -= part) {
		part = n < piece ? n : piece;
		/* Short when the learner listens no more. */
		part = (size_t)fmax(1, (double)write(voice, data, part));
		while (dl_host_next(h, 0, &ev))
			take(h, &s, &ev);
	}
	close(voice);
	exited = 1;
	while (!s.dead && dl_host_next(h, 0, &ev))
		take(h, &s, &ev);
	if (!s.dead || dl_host_running(h))
		abort();
	/* It forgets what is gone when it turns. */
	if (dl_loop_once(&loop, 0, NULL))
		abort();
	return s;
}

/* A line that is taken says the same when it is written again. */
static void check_line(const uint8_t *data, size_t n)
{
	struct dl_line line, again;
	struct dl_err e = {0};
	char text[64];

	if (dl_line_parse(&line, (const char *)data, n, &e)) {
		if (e.code != DL_PROTOCOL || !e.text[0])
			abort();
		return;
	}
	if (line.kind != DL_LINE_STEP)
		return;
	snprintf(text, sizeof(text), "step %llu %.17g",
		(unsigned long long)line.tokens, line.loss);
	if (dl_line_parse(&again, text, strlen(text), NULL) ||
		again.tokens != line.tokens ||
		(again.loss != line.loss && !isnan(line.loss)))
		abort();
}

/* One for all inputs; nobody looks for it by its path. */
static struct dl_host *new_host(void)
{
	static const char *const none[] = {NULL};
	char scratch[] = "/tmp/fuzz-host-XXXXXX";
	struct dl_host_config c = {
		.loop = &loop, .environ = none, .scratch = scratch};
	char path[sizeof(scratch) + sizeof("/trainer")];
	struct dl_host *h;

	if (!mkdtemp(scratch) || !(h = dl_host_new(&c, NULL)))
		abort();
	snprintf(path, sizeof(path), "%s/trainer", scratch);
	if (unlink(path) || rmdir(scratch))
		abort();
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct dl_host *h;
	struct seen once, pieces;

	if (n > LONGEST)
		return 0;
	if (!h)
		h = new_host();
	check_line(data, n);
	once = talk(h, data, n, LONGEST);
	pieces = talk(h, data, n, n / 50 + 1);
	if (once.steps != pieces.steps || once.answers != pieces.answers ||
		once.tokens != pieces.tokens ||
		strcmp(once.why.text, pieces.why.text) != 0)
		abort();
	return 0;
}
