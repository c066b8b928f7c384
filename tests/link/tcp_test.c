/* How much of what was written waits in the kernel. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/tcp.h"
#include "tests/tap.h"

enum { MILLISECOND = 1000000, MEGABYTE = 1000000 };

static int unsent(int fd)
{
	int n = -1;
	socklen_t size = sizeof n;

	getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &n, &size);
	return n;
}

/* For so many milliseconds it takes n bytes in each. */
static void take(struct dl_tcp_pace *p, int fd, int64_t *now, int ms, size_t n)
{
	for (int i = 0; i < ms; i++) {
		*now += MILLISECOND;
		dl_tcp_took(p, fd, n, *now);
	}
}

int main(void)
{
	const struct dl_tcp usual = {0};
	struct dl_tcp_pace p = {0};
	int fd = socket(AF_INET, SOCK_STREAM, 0), little, pair[2];
	int64_t now = 1000 * (int64_t)MILLISECOND;

	if (fd < 0 || dl_tcp_apply(&usual, fd, NULL))
		return 99;
	little = unsent(fd);
	ok(little > 0 && little <= 256 << 10, "%d bytes wait", little);
	take(&p, fd, &now, 100, MEGABYTE / 8);
	ok(unsent(fd) == little, "as many at 1 Gbit/s");
	take(&p, fd, &now, 25, 2 * MEGABYTE);
	ok(unsent(fd) > 4 * little, "%d at 2 GB/s", unsent(fd));
	take(&p, fd, &now, 25, MEGABYTE / 8);
	ok(unsent(fd) == little, "few again when it slows down");
	take(&p, fd, &now, 25, 2 * MEGABYTE);
	now += 1000 * (int64_t)MILLISECOND;
	take(&p, fd, &now, 1, 20 * MEGABYTE);
	ok(unsent(fd) == little, "much at once after a pause is not fast");
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 99;
	p = (struct dl_tcp_pace){0};
	take(&p, pair[0], &now, 25, 2 * MEGABYTE);
	ok(unsent(pair[0]) == -1, "what is no tcp is left alone");
	return done_testing();
}
