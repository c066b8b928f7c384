#include "link/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int ends[2] = {-1, -1};

static void caught(int signal)
{
	unsigned char byte = (unsigned char)signal;
	int before = errno;

	/* When the pipe is full the loop has been told often enough. */
	(void)!write(ends[1], &byte, 1);
	errno = before;
}

int dl_signals_open(const int *signals, size_t n, int *fd, struct dl_err *e)
{
	struct sigaction act = {.sa_flags = SA_RESTART};
	size_t i;

	if (ends[0] < 0 && pipe2(ends, O_NONBLOCK | O_CLOEXEC) < 0)
		return dl_fail_sys(e, DL_OSERR, "pipe for signals");
	sigfillset(&act.sa_mask);
	act.sa_handler = caught;
	for (i = 0; i < n; i++)
		if (sigaction(signals[i], &act, NULL) < 0)
			return dl_fail_sys(
				e, DL_OSERR, "signal %d", signals[i]);
	act.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &act, NULL);
	*fd = ends[0];
	return 0;
}

int dl_signals_next(void)
{
	unsigned char byte;

	return read(ends[0], &byte, 1) == 1 ? byte : 0;
}
