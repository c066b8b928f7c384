#include "cmd/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"
#include "cmd/cmd.h"

static struct {
	int fd; /* -1: there is no manager */
	struct sockaddr_un address;
	socklen_t length;
	int64_t every; /* signs of life; 0: none is wanted */
	int64_t due;
	int stopping; /* said */
} manager = {.fd = -1};

/* A path, or @NAME, which begins with NUL instead and does not end with one. */
static int find(const char *name)
{
	size_t n = strlen(name);

	if (n < 2 || n >= sizeof(manager.address.sun_path) ||
		(*name != '/' && *name != '@'))
		return -1;
	manager.address.sun_family = AF_UNIX;
	memcpy(manager.address.sun_path, name, n);
	if (*name == '@')
		manager.address.sun_path[0] = '\0';
	manager.length =
		(socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return 0;
}

/* Twice as often as the manager looks. */
static void find_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	uint64_t n;

	if (!usec || (pid && strtol(pid, NULL, 10) != (long)getpid()))
		return;
	if (dl_parse_u64(usec, 1, INT64_MAX / 1000, &n)) {
		cmd_warn("WATCHDOG_USEC: not a number of microseconds");
		return;
	}
	manager.every = (int64_t)n * 1000 / 2;
}

void notify_begin(void)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (name && find(name))
		cmd_warn("NOTIFY_SOCKET: neither a path nor @NAME");
	else if (name)
		manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager.fd >= 0)
		find_watchdog();
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

/* Never waits: a manager that is behind misses it. */
static void tell(const char *what)
{
	if (manager.fd >= 0)
		(void)!sendto(manager.fd, what, strlen(what),
			MSG_DONTWAIT | MSG_NOSIGNAL,
			(const struct sockaddr *)&manager.address,
			manager.length);
}

void notify_ready(void)
{
	tell("READY=1");
}

void notify_reloading(void)
{
	char what[64];

	snprintf(what, sizeof(what), "RELOADING=1\nMONOTONIC_USEC=%" PRId64,
		dl_now() / 1000);
	tell(what);
}

void notify_stopping(void)
{
	if (!manager.stopping)
		tell("STOPPING=1");
	manager.stopping = 1;
}

void notify_status(const char *line)
{
	char what[520];

	snprintf(what, sizeof(what), "STATUS=%s", line);
	tell(what);
}

void notify_turn(int64_t now)
{
	if (!manager.every || now < manager.due)
		return;
	tell("WATCHDOG=1");
	manager.due = now + manager.every;
}

int64_t notify_wake(void)
{
	return manager.every ? manager.due : INT64_MAX;
}
