#include "link/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/num.h"
#include "base/spawn.h"

extern char **environ;

static const int64_t patience = DL_SECOND;

static int spawn(const char *command, int end, pid_t *pid, struct dl_err *e)
{
	static char shell[] = "/bin/sh", flag[] = "-c";
	char *const argv[] = {shell, flag, (char *)command, NULL};
	posix_spawn_file_actions_t files;
	int code;

	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, end, 0);
	posix_spawn_file_actions_adddup2(&files, end, 1);
	code = dl_spawn(argv, environ, &files, pid, e);
	posix_spawn_file_actions_destroy(&files);
	return code ? e->code = DL_OSERR : 0;
}

int dl_child_start(
	struct dl_child *c, const char *command, int *fd, struct dl_err *e)
{
	int pair[2], code;

	*c = (struct dl_child){0};
	*fd = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return dl_fail_sys(e, DL_OSERR, "socketpair");
	code = spawn(command, pair[1], &c->pid, e);
	close(pair[1]);
	if (code) {
		close(pair[0]);
		return code;
	}
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	*fd = pair[0];
	return 0;
}

/* Its group lives until it is reaped: nobody else can have that number. */
static int exited(const struct dl_child *c)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) <
		       0 ||
	       info.si_pid != 0;
}

static void reap(struct dl_child *c)
{
	kill(-c->pid, SIGKILL);
	if (waitpid(c->pid, &c->status, 0) < 0)
		c->status = 0; /* somebody ignores SIGCHLD for us */
	c->pid = 0;
}

static void pass_deadline(struct dl_child *c, int64_t now)
{
	if (c->ending == DL_CHILD_LIVES) {
		c->ending = DL_CHILD_LEAVES;
		c->deadline = now + patience;
	} else if (c->ending == DL_CHILD_LEAVES && now >= c->deadline) {
		c->ending = DL_CHILD_TERMINATED;
		c->deadline = now + patience;
		c->ours = 1;
		kill(-c->pid, SIGTERM);
	} else if (c->ending == DL_CHILD_TERMINATED && now >= c->deadline) {
		c->ending = DL_CHILD_KILLED;
		c->deadline = INT64_MAX;
		kill(-c->pid, SIGKILL);
	}
}

int dl_child_end(struct dl_child *c, int64_t now)
{
	if (!c->pid)
		return 1;
	if (!exited(c)) {
		pass_deadline(c, now);
		return 0;
	}
	reap(c);
	return 1;
}

void dl_child_wait(struct dl_child *c)
{
	static const struct timespec moment = {.tv_nsec = 2000000};

	while (!dl_child_end(c, dl_now()))
		nanosleep(&moment, NULL);
}

void dl_child_kill(struct dl_child *c)
{
	if (c->pid)
		reap(c);
}

int dl_child_exit(const struct dl_child *c)
{
	return !c->ours && WIFEXITED(c->status) ? WEXITSTATUS(c->status) : -1;
}

void dl_child_explain(const struct dl_child *c, struct dl_err *e)
{
	if (c->ours || !c->status || e->code != DL_UNAVAILABLE ||
		dl_child_exit(c) == e->code)
		return;
	if (WIFSIGNALED(c->status))
		dl_fail(e, DL_UNAVAILABLE,
			"the command was killed by signal %d",
			WTERMSIG(c->status));
	else
		dl_fail(e, DL_UNAVAILABLE, "the command exited with status %d",
			WEXITSTATUS(c->status));
}
