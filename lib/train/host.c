#include "train/host.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "train/line.h"
#include "train/spawn.h"

/* How long a trainer has to exit once it closed its end or got SIGTERM. */
#define LEAVE_NS (2 * DL_SECOND)

enum phase {
	NOTHING,  /* no process */
	STARTING, /* ready has not come */
	BOUNDARY, /* the trainer reads commands */
	TRAINING, /* between go and the next step */
};

/* How far the trainer's end has come; each at its deadline turns into the
 * next. */
enum ending { NOT, STOPPING, LEAVING, TERMINATED, KILLED };

struct dl_host {
	struct dl_host_config config;
	char *path, *variable; /* of the socket; DL_TRAINER=path */
	const char **environ;
	int listener, pair, voice; /* pair: our end of 3 and 4; voice: the
				    * one of them that the trainer uses */
	struct dl_buf in, out;
	enum phase phase;
	enum ending ending;
	int64_t deadline;
	int64_t heard; /* its last line, or the first order since */
	pid_t pid;
	unsigned unanswered, optional; /* optional: how many answers are due
					* until that of an order that may be
					* refused, included; 0: none */
	unsigned before;	       /* ... until the step */
	int wanted;
	struct dl_err why;
};

static void shut(struct dl_host *h, int *fd)
{
	if (*fd < 0)
		return;
	dl_loop_remove(h->config.loop, *fd);
	close(*fd);
	*fd = -1;
}

/* That a descriptor is ready is all there is to say: dl_host_next looks. */
static void turn(void *ctx, int fd, short revents)
{
	(void)ctx;
	(void)fd;
	(void)revents;
}

static void watch(struct dl_host *h)
{
	struct dl_loop *loop = h->config.loop;

	if (h->voice >= 0)
		dl_loop_set(loop, h->voice,
			(short)(POLLIN | (h->out.len ? POLLOUT : 0)), turn,
			NULL);
	if (h->pair >= 0)
		dl_loop_set(loop, h->pair, POLLIN, turn, NULL);
	if (h->phase == STARTING && h->voice < 0)
		dl_loop_set(loop, h->listener, POLLIN, turn, NULL);
	else
		dl_loop_remove(loop, h->listener);
}

static int listen_at(struct dl_host *h, struct dl_err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(h->path) >= sizeof a.sun_path)
		return dl_fail(e, DL_CANTCREAT,
			"%s: too long for a socket's name", h->path);
	strcpy(a.sun_path, h->path);
	h->listener =
		socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (h->listener < 0 ||
		bind(h->listener, (struct sockaddr *)&a, sizeof a) ||
		listen(h->listener, 4))
		return dl_fail_sys(e, DL_CANTCREAT, "%s", h->path);
	return 0;
}

struct dl_host *dl_host_new(const struct dl_host_config *c, struct dl_err *e)
{
	struct dl_host *h = dl_alloc(sizeof *h);
	size_t n = 0;

	h->config = *c;
	h->listener = h->pair = h->voice = -1;
	h->path = dl_sprintf("%s/trainer", c->scratch);
	h->variable = dl_sprintf("DL_TRAINER=%s", h->path);
	while (c->environ[n])
		n++;
	h->environ = dl_alloc_array(n + 2, sizeof *h->environ);
	memcpy(h->environ, c->environ, n * sizeof *h->environ);
	h->environ[n] = h->variable;
	if (listen_at(h, e)) {
		dl_host_free(h);
		return NULL;
	}
	return h;
}

void dl_host_free(struct dl_host *h)
{
	if (!h)
		return;
	if (h->phase != NOTHING) {
		kill(-h->pid, SIGKILL);
		waitpid(h->pid, NULL, 0);
	}
	shut(h, &h->listener);
	shut(h, &h->pair);
	shut(h, &h->voice);
	unlink(h->path);
	dl_buf_free(&h->in);
	dl_buf_free(&h->out);
	free(h->environ);
	free(h->variable);
	free(h->path);
	free(h);
}

int dl_host_start(struct dl_host *h, struct dl_err *e)
{
	int pair[2], late, code;

	/* What a trainer before this one left in the queue. */
	while ((late = accept(h->listener, NULL, NULL)) >= 0)
		close(late);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return dl_fail_sys(e, DL_OSERR, "trainer");
	code = dl_trainer_spawn(
		h->config.command, h->environ, pair[1], &h->pid, e);
	close(pair[1]);
	if (code) {
		close(pair[0]);
		return code;
	}
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	h->pair = pair[0];
	h->phase = STARTING;
	h->ending = NOT;
	h->deadline = INT64_MAX;
	h->heard = dl_now();
	h->unanswered = h->optional = h->before = 0;
	h->wanted = 0;
	h->why.code = 0;
	watch(h);
	return 0;
}

int dl_host_running(const struct dl_host *h)
{
	return h->phase != NOTHING;
}

/* Is it the trainer's turn to say something? */
static int owes(const struct dl_host *h)
{
	return h->phase == STARTING || h->phase == TRAINING || h->unanswered;
}

/* Those before `go` are answered before the step, those after it behind. */
static int owes_answer(const struct dl_host *h)
{
	return h->phase == TRAINING ? h->before > 0 : h->unanswered > 0;
}

static void send_orders(struct dl_host *h)
{
	while (h->voice >= 0 && h->out.len) {
		ssize_t n =
			send(h->voice, h->out.data, h->out.len, MSG_NOSIGNAL);

		if (n <= 0)
			break;
		dl_buf_drop(&h->out, (size_t)n);
	}
}

/* Sent at once: the caller's next work should not keep the trainer waiting. */
static void say(struct dl_host *h, const char *fmt, va_list ap)
{
	char line[DL_LINE_MAX];

	vsnprintf(line, sizeof line, fmt, ap);
	if (h->phase == NOTHING || h->ending > STOPPING)
		return;
	if (!owes(h))
		h->heard = dl_now();
	if (strcmp(line, "go") == 0) {
		h->phase = TRAINING;
		h->before = h->unanswered;
	} else {
		h->unanswered++;
	}
	dl_buf_str(&h->out, line);
	dl_buf_byte(&h->out, '\n');
	send_orders(h);
	watch(h);
}

void dl_host_say(struct dl_host *h, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(h, fmt, ap);
	va_end(ap);
}

void dl_host_ask(struct dl_host *h, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(h, fmt, ap);
	va_end(ap);
	h->optional = h->unanswered;
}

static void end(struct dl_host *h, enum ending to, int64_t deadline)
{
	h->ending = to;
	h->deadline = deadline;
	if (to == TERMINATED)
		kill(-h->pid, SIGTERM);
	if (to == KILLED)
		kill(-h->pid, SIGKILL);
}

void dl_host_stop(struct dl_host *h, int64_t now)
{
	if (h->phase == NOTHING || h->ending != NOT)
		return;
	h->wanted = 1;
	if (h->phase == STARTING) {
		end(h, TERMINATED, now + LEAVE_NS);
		return;
	}
	dl_host_say(h, "stop");
	end(h, STOPPING, now + h->config.stop_ns);
}

void dl_host_hang_up(struct dl_host *h, int64_t now)
{
	if (h->phase == NOTHING || h->ending != NOT)
		return;
	h->wanted = 1;
	shutdown(h->voice, SHUT_WR);
	end(h, STOPPING, now + h->config.stop_ns);
}

void dl_host_fail(struct dl_host *h, int64_t now, const struct dl_err *why)
{
	if (h->phase == NOTHING || h->ending >= TERMINATED)
		return;
	if (h->ending == NOT)
		h->why = *why;
	end(h, TERMINATED, now + LEAVE_NS);
}

/* When it is taken to hang; INT64_MAX while it need not say anything. */
static int64_t hangs_at(const struct dl_host *h)
{
	int64_t silence = h->config.silence_ns;

	return silence && h->ending == NOT && owes(h) ? h->heard + silence
						      : INT64_MAX;
}

static void judge_silence(struct dl_host *h, int64_t now)
{
	char time[DL_HUMAN];
	struct dl_err why;

	if (now < hangs_at(h))
		return;
	dl_fail(&why, DL_UNAVAILABLE, "trainer: hangs: no %s for %s",
		h->phase == STARTING ? "ready"
		: owes_answer(h)     ? "answer"
				     : "step",
		dl_human_duration(time, h->config.silence_ns));
	dl_host_fail(h, now, &why);
}

static void pass_deadline(struct dl_host *h, int64_t now)
{
	char time[DL_HUMAN];

	if (now < h->deadline)
		return;
	if (h->ending == STOPPING)
		dl_fail(&h->why, DL_UNAVAILABLE,
			"trainer: did not stop within %s: killed",
			dl_human_duration(time, h->config.stop_ns));
	if (h->ending < TERMINATED)
		end(h, TERMINATED, now + LEAVE_NS);
	else
		end(h, KILLED, INT64_MAX);
}

/* The trainer closed its end: it is about to exit, or should be. One that was
 * asked to stop has its time for that: launchers may be slow to see that what
 * they launched has exited. */
static void hear_end(struct dl_host *h, int64_t now)
{
	shut(h, &h->voice);
	if (h->ending != NOT)
		return;
	dl_fail(&h->why, DL_PROTOCOL, "trainer: closed its end");
	end(h, LEAVING, now + LEAVE_NS);
}

static void broken(struct dl_host *h, int64_t now, const char *line)
{
	struct dl_err why;

	dl_fail(&why, DL_PROTOCOL, "trainer: says \"%s\" out of turn", line);
	dl_host_fail(h, now, &why);
}

static void count_answer(struct dl_host *h)
{
	h->unanswered--;
	if (h->optional)
		h->optional--;
	if (h->before)
		h->before--;
}

/* The meaning of a line in this phase; 1 when it is an event. */
static int take_line(struct dl_host *h, int64_t now, const char *s, size_t n,
	struct dl_host_event *ev)
{
	struct dl_line line;
	struct dl_err why;

	if (dl_line_parse(&line, s, n, &why)) {
		dl_host_fail(h, now, &why);
		return 0;
	}
	h->heard = now;
	if (line.kind == DL_LINE_READY && h->phase == STARTING) {
		h->phase = BOUNDARY;
		ev->kind = DL_HOST_READY;
		return 1;
	}
	if (line.kind == DL_LINE_STEP && h->phase == TRAINING && !h->before) {
		h->phase = BOUNDARY;
		ev->kind = DL_HOST_STEP;
		ev->tokens = line.tokens;
		ev->loss = line.loss;
		return 1;
	}
	if (line.kind == DL_LINE_OK && h->phase != STARTING && owes_answer(h)) {
		count_answer(h);
		ev->kind = DL_HOST_ANSWER;
		return 1;
	}
	if (line.kind == DL_LINE_ERROR && h->optional == 1) {
		count_answer(h);
		ev->kind = DL_HOST_REFUSED;
		dl_fail(&ev->err, DL_DATA, "trainer: %s", line.text);
		return 1;
	}
	if (line.kind == DL_LINE_ERROR) {
		dl_fail(&why, DL_DATA, "trainer: %s", line.text);
		dl_host_fail(h, now, &why);
		return 0;
	}
	broken(h, now,
		line.kind == DL_LINE_OK	    ? "ok"
		: line.kind == DL_LINE_STEP ? "step"
					    : "ready");
	return 0;
}

/* The next line that has come whole and is an event. */
static int next_line(struct dl_host *h, int64_t now, struct dl_host_event *ev)
{
	while (h->ending < TERMINATED) {
		char *s = (char *)h->in.data;
		char *newline = s ? memchr(s, '\n', h->in.len) : NULL;
		int event;

		if (!newline && h->in.len <= DL_LINE_MAX)
			return 0;
		event = take_line(h, now, s,
			newline ? (size_t)(newline - s) : h->in.len, ev);
		dl_buf_drop(&h->in,
			newline ? (size_t)(newline - s) + 1 : h->in.len);
		if (event)
			return 1;
	}
	return 0;
}

/* The first of the two that the trainer uses is its voice. */
static void find_voice(struct dl_host *h)
{
	char c;

	if (h->voice >= 0 || h->phase != STARTING)
		return;
	h->voice = accept(h->listener, NULL, NULL);
	if (h->voice >= 0) {
		fcntl(h->voice, F_SETFD, FD_CLOEXEC);
		fcntl(h->voice, F_SETFL, O_NONBLOCK);
		shut(h, &h->pair);
	} else if (h->pair >= 0) {
		ssize_t n = recv(h->pair, &c, 1, MSG_PEEK);

		if (n > 0) {
			h->voice = h->pair;
			h->pair = -1;
		} else if (n == 0) {
			/* Launchers close what they do not know. */
			shut(h, &h->pair);
		}
	}
}

static void move_bytes(struct dl_host *h, int64_t now)
{
	ssize_t n;

	find_voice(h);
	send_orders(h);
	while (h->voice >= 0 && h->in.len <= DL_LINE_MAX) {
		dl_buf_reserve(&h->in, DL_LINE_MAX);
		n = recv(h->voice, h->in.data + h->in.len, DL_LINE_MAX, 0);
		if (n > 0)
			h->in.len += (size_t)n;
		else if (n == 0 || (errno != EAGAIN && errno != EINTR))
			hear_end(h, now);
		if (n < 0)
			break;
	}
}

/* What an exit of the trainer's own says. */
static void judge_exit(struct dl_host *h, int status)
{
	if (WIFSIGNALED(status))
		dl_fail(&h->why, DL_UNAVAILABLE, "trainer: killed by signal %d",
			WTERMSIG(status));
	else if (!h->wanted || WEXITSTATUS(status))
		dl_fail(&h->why, DL_UNAVAILABLE,
			"trainer: exited with status %d", WEXITSTATUS(status));
}

/* 1 when the trainer has exited: what is left of its group goes with it. */
static int reap(struct dl_host *h, struct dl_host_event *ev)
{
	siginfo_t info = {0};
	int status;

	if (waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
		info.si_pid == 0)
		return 0;
	kill(-h->pid, SIGKILL);
	waitpid(h->pid, &status, 0);
	if (h->ending <= LEAVING)
		judge_exit(h, status);
	h->phase = NOTHING;
	h->deadline = INT64_MAX;
	shut(h, &h->voice);
	shut(h, &h->pair);
	dl_buf_clear(&h->in);
	dl_buf_clear(&h->out);
	ev->kind = DL_HOST_DIED;
	ev->wanted = h->wanted;
	ev->err = h->why;
	return 1;
}

int dl_host_next(struct dl_host *h, int64_t now, struct dl_host_event *ev)
{
	int event;

	if (h->phase == NOTHING)
		return 0;
	move_bytes(h, now);
	event = next_line(h, now, ev);
	if (!event) {
		judge_silence(h, now);
		pass_deadline(h, now);
		event = reap(h, ev);
	}
	watch(h);
	return event;
}

int64_t dl_host_wake(const struct dl_host *h)
{
	int64_t hangs = hangs_at(h);

	if (h->phase == NOTHING)
		return INT64_MAX;
	return hangs < h->deadline ? hangs : h->deadline;
}
