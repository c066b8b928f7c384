/*
 * Addresses, listening and connecting, the poll loop and signals.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"
#include "link/address.h"
#include "link/loop.h"
#include "link/signals.h"
#include "tests/tap.h"

#define KEY "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqo="

static void test_parse(const char *s, const char *prints)
{
	char text[DL_ADDRESS_MAX];
	struct dl_address a;
	struct dl_err e = {0};
	int code = dl_address_parse(&a, s, &e);

	if (prints)
		ok(code == 0 && strcmp(dl_address_print(text, &a), prints) == 0,
			"%s %s", s, e.text);
	else
		ok(code == DL_USAGE && *e.text && !strstr(e.text, KEY),
			"refused: %s", e.text);
}

static void test_show(const char *s, const char *shows)
{
	char text[DL_ADDRESS_MAX];
	struct dl_address a;

	ok(!dl_address_parse(&a, s, NULL) &&
			!strcmp(dl_address_show(text, &a), shows),
		"%s in a message: %s", s, text);
}

static void test_addresses(void)
{
	char path[200] = "unix:/";

	test_parse("unix:/run/dl.sock", "unix:/run/dl.sock");
	test_parse("unix:a:b", "unix:a:b");
	test_parse("tcp:localhost:4000", "tcp:localhost:4000");
	test_parse("tcp:[::1]:0", "tcp:[::1]:0");
	test_parse("tcp:h:065535", "tcp:h:65535");
	test_parse("", NULL);
	test_parse("/run/dl.sock", NULL);
	test_parse("unix:", NULL);
	test_parse("tcp:" KEY "@localhost:4000", "tcp:" KEY "@localhost:4000");
	test_parse("tcp:" KEY "@[::1]:0", "tcp:" KEY "@[::1]:0");
	test_parse("tcp:@h:1", NULL);
	test_parse("tcp:x" KEY "@h:1", NULL);
	test_parse("tcp:h@" KEY ":1", NULL);
	test_parse("tcp:" KEY "@" KEY "@h:1", NULL);
	test_parse("tcp:" KEY "@", NULL);
	test_parse("tcp:" KEY, NULL);
	test_parse(KEY "@h:1", NULL);
	test_parse("tcp:host", NULL);
	test_parse("tcp::1", NULL);
	test_parse("tcp:[]:1", NULL);
	test_parse("tcp:::1:1", NULL);
	test_parse("tcp:h:65536", NULL);
	test_parse("tcp:h:", NULL);
	test_parse("tcp:h:http", NULL);
	test_parse("exec:ssh dc2 -T", "exec:ssh dc2 -T");
	test_parse("exec:echo \a", "exec:echo \\x07");
	test_parse("exec:", NULL);
	test_parse("dir:/spool", "dir:/spool");
	test_parse("dir:", NULL);
	memset(path + 6, 'x', 150);
	test_parse(path, NULL);
	test_show(
		"tcp:" KEY "@localhost:4000", "tcp:qqqqqqqq...@localhost:4000");
	test_show("tcp:" KEY "@[::1]:0", "tcp:qqqqqqqq...@[::1]:0");
	test_show("tcp:" KEY ":1", "tcp:qqqqqqqq...:1");
	test_show("tcp:localhost:1", "tcp:localhost:1");
	test_show("unix:/" KEY, "unix:/" KEY);
}

/* Bytes cross from the one who connects to the one who accepts. */
static void test_listen(const char *s, enum dl_insecure allowed)
{
	char peer[DL_PEER_MAX], byte = 0;
	struct dl_address a;
	struct dl_child child;
	struct dl_err e = {0};
	int listener, fd = -1, other = -1, tries;

	dl_address_parse(&a, s, &e);
	if (!ok(dl_address_listen(&a, allowed, &listener, &e) == 0, "listen %s",
		    e.text))
		return;
	ok(dl_address_accept(listener, &fd, &e) == 0 && fd == -1,
		"%s: nobody waits", s);
	ok(dl_address_connect(&a, allowed, &other, &child, &e) == 0,
		"connect %s", e.text);
	for (tries = 0; fd < 0 && tries < 1000; tries++) {
		dl_address_accept(listener, &fd, &e);
		usleep(1000);
	}
	ok(fd >= 0 && fcntl(fd, F_GETFL) & O_NONBLOCK &&
			fcntl(fd, F_GETFD) & FD_CLOEXEC &&
			fcntl(other, F_GETFL) & O_NONBLOCK &&
			fcntl(other, F_GETFD) & FD_CLOEXEC,
		"%s: connected, non-blocking and close-on-exec", s);
	for (tries = 0; send(other, "x", 1, 0) != 1 && tries < 1000; tries++)
		usleep(1000);
	for (tries = 0; recv(fd, &byte, 1, 0) != 1 && tries < 1000; tries++)
		usleep(1000);
	ok(byte == 'x', "%s: a byte crosses", s);
	ok(strncmp(dl_address_peer(peer, fd), s, 4) == 0, "the peer is %s",
		peer);
	close(fd);
	close(other);
	dl_address_unlisten(&a, listener);
	ok(dl_address_connect(&a, DL_INSECURE_LOOPBACK, &fd, &child, &e) ==
				DL_UNAVAILABLE ||
			a.kind == DL_LINK_TCP,
		"%s: nobody is there any more: %s", s, e.text);
	if (fd >= 0)
		close(fd);
}

static void test_insecure(void)
{
	struct dl_address a;
	struct dl_child child;
	struct dl_err e = {0};
	int fd;

	dl_address_parse(&a, "tcp:127.0.0.1:0", &e);
	ok(dl_address_listen(&a, DL_INSECURE_NO, &fd, &e) == DL_USAGE && fd < 0,
		"plain tcp must be asked for: %s", e.text);
	ok(dl_address_connect(&a, DL_INSECURE_NO, &fd, &child, &e) == DL_USAGE,
		"on both sides: %s", e.text);
	dl_address_parse(&a, "tcp:0.0.0.0:0", &e);
	ok(dl_address_listen(&a, DL_INSECURE_LOOPBACK, &fd, &e) == DL_USAGE,
		"and twice beyond loopback: %s", e.text);
	dl_address_parse(&a, "tcp:192.0.2.1:9", &e);
	ok(dl_address_connect(&a, DL_INSECURE_LOOPBACK, &fd, &child, &e) ==
			DL_USAGE,
		"on both sides: %s", e.text);
	dl_address_parse(&a, "tcp:0.0.0.0:0", &e);
	ok(dl_address_listen(&a, DL_INSECURE_ANYWHERE, &fd, &e) == 0 &&
			strcmp(a.port, "0") != 0,
		"then it listens, and says on which port");
	close(fd);
}

static void test_resolve(void)
{
	char path[] = "unix:/run/dl.sock", text[DL_ADDRESS_MAX];
	struct dl_address a, at;
	unsigned count, others;
	struct dl_err e;
	int code;

	dl_address_parse(&a, path, &e);
	ok(!dl_address_resolve(&a, 3, &at, &count, &e) && count == 1 &&
			!strcmp(at.path, a.path),
		"what is not tcp leads to itself");
	dl_address_parse(&a, "tcp:[::1]:7", &e);
	ok(!dl_address_resolve(&a, 0, &at, &count, &e) && count == 1 &&
			!strcmp(dl_address_print(text, &at), "tcp:[::1]:7"),
		"and so does a number: %s", text);
	dl_address_parse(&a, "tcp:localhost:7", &e);
	code = dl_address_resolve(&a, 0, &at, &count, &e);
	ok(!code && (!strcmp(at.host, "127.0.0.1") || !strcmp(at.host, "::1")),
		"a name leads to a number: %s", at.host);
	strcpy(text, at.host);
	ok(!dl_address_resolve(&a, count, &at, &others, &e) &&
			others == count && !strcmp(at.host, text),
		"after the last of %u the first comes again", count);
	dl_address_parse(&a, "tcp:a..b:7", &e);
	ok(dl_address_resolve(&a, 0, &at, &count, &e) == DL_UNAVAILABLE,
		"one without an address: %s", e.text);
}

static void test_stale(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct dl_address a = {.kind = DL_LINK_UNIX}, b;
	struct dl_err e = {0};
	struct stat st;
	int fd, second;

	strcpy(a.path, path);
	strcpy(sun.sun_path, path);
	umask(0);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		abort();
	close(fd);
	ok(dl_address_listen(&a, DL_INSECURE_NO, &fd, &e) == 0,
		"a stale socket is replaced %s", e.text);
	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600,
		"mode 0600, whatever the umask");
	ok(dl_address_listen(&a, DL_INSECURE_NO, &second, &e) == DL_CANTCREAT &&
			second < 0,
		"one in use is not: %s", e.text);
	dl_address_unlisten(&a, fd);
	ok(stat(path, &st) < 0, "its path goes with it");
	b = a;
	if (dl_address_listen(&a, DL_INSECURE_NO, &fd, &e) || unlink(path))
		abort();
	ok(!dl_address_listen(&b, DL_INSECURE_NO, &second, &e),
		"a path that is gone can be taken %s", e.text);
	dl_address_unlisten(&a, fd);
	ok(stat(path, &st) == 0, "and stays with who took it");
	dl_address_unlisten(&b, second);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	ok(dl_address_listen(&a, DL_INSECURE_NO, &fd, &e) == DL_CANTCREAT &&
			stat(path, &st) == 0,
		"a file is left alone: %s", e.text);
	unlink(path);
}

struct counter {
	struct dl_loop *loop;
	int calls, remove;
};

static void count(void *ctx, int fd, short revents)
{
	struct counter *c = ctx;
	char byte;

	(void)revents;
	c->calls += (int)read(fd, &byte, 1);
	if (c->remove >= 0)
		dl_loop_remove(c->loop, c->remove);
}

static void test_loop(void)
{
	struct dl_loop l = DL_LOOP_INIT;
	struct counter c[2] = {{&l, 0, -1}, {&l, 0, -1}};
	struct dl_err e;
	int a[2], b[2];
	int64_t before = dl_now();

	if (pipe(a) || pipe(b))
		abort();
	dl_loop_set(&l, a[0], POLLIN, count, &c[0]);
	dl_loop_set(&l, b[0], POLLIN, count, &c[1]);
	ok(dl_loop_once(&l, before + 20000000, &e) == 0 &&
			dl_now() >= before + 20000000 && !c[0].calls,
		"waits until the deadline, not shorter");
	if (write(a[1], "ab", 2) != 2 || write(b[1], "ab", 2) != 2)
		abort();
	dl_loop_once(&l, INT64_MAX, &e);
	ok(c[0].calls == 1 && c[1].calls == 1, "calls who is ready");
	dl_loop_set(&l, b[0], 0, count, &c[1]);
	c[0].remove = a[0];
	dl_loop_once(&l, INT64_MAX, &e);
	ok(c[0].calls == 2 && c[1].calls == 1, "for the events asked for");
	dl_loop_set(&l, b[0], POLLIN, count, &c[1]);
	dl_loop_set(&l, a[0], POLLIN, count, &c[0]);
	if (write(a[1], "c", 1) != 1)
		abort();
	c[0].remove = a[0];
	c[1].remove = a[0]; /* b is first in the list */
	dl_loop_once(&l, INT64_MAX, &e);
	ok(c[0].calls == 2 && c[1].calls == 2,
		"one that is removed is not called any more");
	dl_loop_once(&l, 0, &e);
	ok(c[0].calls == 2 && c[1].calls == 2, "nor is it later");
	dl_loop_release(&l);
	close(a[0]);
	close(a[1]);
	close(b[0]);
	close(b[1]);
}

static void test_signals(void)
{
	const int signals[] = {SIGTERM, SIGUSR1};
	struct dl_err e;
	int fd, again;

	ok(dl_signals_open(signals, 2, &fd, &e) == 0 &&
			dl_signals_open(signals, 1, &again, &e) == 0 &&
			fd == again,
		"one descriptor for all signals");
	ok(dl_signals_next() == 0, "none has come");
	raise(SIGUSR1);
	raise(SIGTERM);
	raise(SIGPIPE);
	ok(dl_signals_next() == SIGUSR1 && dl_signals_next() == SIGTERM &&
			dl_signals_next() == 0,
		"they are told in order, SIGPIPE is not");
}

/* What one end was set up as, the one that it accepts is too. */
static void test_tcp(void)
{
	struct dl_tcp bad = {.congestion = "none-such"};
	struct dl_tcp large = {.buffers = 1 << 30};
	struct dl_child child;
	struct dl_address a;
	struct dl_err e = {0};
	char name[16] = "";
	socklen_t n = sizeof(name), m = sizeof(int);
	int listener, near, far = -1, nodelay = 0;

	ok(dl_tcp_check(&bad, &e) == DL_USAGE, "%s", e.text);
	ok(dl_tcp_check(&large, &e) == DL_USAGE, "%s", e.text);
	dl_address_parse(&a, "tcp:127.0.0.1:0", &e);
	a.tcp = (struct dl_tcp){.congestion = "reno", .buffers = 65536};
	if (dl_address_listen(&a, DL_INSECURE_LOOPBACK, &listener, &e)) {
		skip("%s", e.text);
		return;
	}
	ok(!dl_address_connect(&a, DL_INSECURE_LOOPBACK, &near, &child, &e),
		"connects %s", e.text);
	while (far < 0)
		dl_address_accept(listener, &far, &e);
	getsockopt(far, IPPROTO_TCP, TCP_CONGESTION, name, &n);
	getsockopt(far, IPPROTO_TCP, TCP_NODELAY, &nodelay, &m);
	ok(strcmp(name, "reno") == 0 && nodelay, "an accepted socket: %s",
		name);
	close(far);
	close(near);
	dl_address_unlisten(&a, listener);
}

int main(void)
{
	char folder[] = "/tmp/dl-link-XXXXXX", link[64], *path;

	if (!mkdtemp(folder))
		abort();
	snprintf(link, sizeof(link), "unix:%s/s", folder);
	path = link + strlen("unix:");
	test_addresses();
	test_listen(link, DL_INSECURE_NO);
	test_listen("tcp:127.0.0.1:0", DL_INSECURE_LOOPBACK);
	test_insecure();
	test_resolve();
	test_tcp();
	test_stale(path);
	test_loop();
	test_signals();
	rmdir(folder);
	return done_testing();
}
