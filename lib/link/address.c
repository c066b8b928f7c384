#include "link/address.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"

enum { BACKLOG = 64, KEY_SHOWN = 8 };

/* Cuts what may be a key in s, wherever it stands. */
static char *cut_keys(char *s)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz"
				     "0123456789+/=";

	for (char *at = s; *at; at += *at != '\0') {
		size_t n = strspn(at, digits);
		char *end = at + n;

		if (n + 1 >= DL_KEY_TEXT) {
			memcpy(at + KEY_SHOWN, "...", 3);
			at += KEY_SHOWN + 3;
			memmove(at, end, strlen(end) + 1);
		} else {
			at = end;
		}
	}
	return s;
}

/* The key in front of a host: what follows it, or NULL when it is none. */
static const char *parse_key(struct dl_address *a, const char *s)
{
	const char *at = strchr(s, '@');

	if (!at)
		return s;
	a->keyed = 1;
	if (strchr(at + 1, '@') ||
		dl_key_parse(a->key, s, (size_t)(at - s), NULL))
		return NULL;
	return at + 1;
}

static int parse_tcp(struct dl_address *a, const char *s)
{
	const char *colon = strrchr(s, ':');
	uint64_t port;
	size_t n;

	if (!colon || dl_parse_u64(colon + 1, 0, 65535, &port))
		return -1;
	n = (size_t)(colon - s);
	if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
		s++;
		n -= 2;
	} else if (memchr(s, ':', n)) {
		return -1;
	}
	if (n == 0 || n >= sizeof(a->host) || memchr(s, '[', n) ||
		memchr(s, ']', n))
		return -1;
	a->kind = DL_LINK_TCP;
	memcpy(a->host, s, n);
	snprintf(a->port, sizeof(a->port), "%u", (unsigned)port);
	return 0;
}

int dl_address_parse(struct dl_address *a, const char *s, struct dl_err *e)
{
	char shown[128];

	*a = (struct dl_address){.kind = DL_LINK_UNIX};
	cut_keys(dl_scrub(shown, sizeof(shown), s, strlen(s)));
	if (strncmp(s, "exec:", 5) == 0) {
		a->kind = DL_LINK_EXEC;
		a->command = s + 5;
		return *a->command ? 0
				   : dl_fail(e, DL_USAGE,
					     "\"%s\" names no command", shown);
	}
	if (strncmp(s, "dir:", 4) == 0) {
		a->kind = DL_LINK_DIR;
		a->folder = s + 4;
		return *a->folder ? 0
				  : dl_fail(e, DL_USAGE,
					    "\"%s\" names no folder", shown);
	}
	if (strncmp(s, "unix:", 5) == 0) {
		s += 5;
		if (!*s || strlen(s) >= sizeof(a->path))
			return dl_fail(e, DL_USAGE,
				"\"%s\": the path must have 1 to %zu bytes",
				shown, sizeof(a->path) - 1);
		memcpy(a->path, s, strlen(s) + 1);
		return 0;
	}
	if (strncmp(s, "tcp:", 4) != 0)
		return dl_fail(e, DL_USAGE,
			"\"%s\" is no link: unix:PATH, tcp:HOST:PORT, "
			"exec:COMMAND or dir:PATH",
			shown);
	s = parse_key(a, s + 4);
	if (!s)
		return dl_fail(e, DL_USAGE,
			"\"%s\": what is before @ is no public key", shown);
	if (parse_tcp(a, s))
		return dl_fail(
			e, DL_USAGE, "\"%s\" is not tcp:HOST:PORT", shown);
	return 0;
}

/* What is foreign text to a terminal, after its kind. */
static void print_rest(
	char out[DL_ADDRESS_MAX], const char *kind, const char *rest)
{
	size_t n = strlen(kind);

	memcpy(out, kind, n);
	dl_scrub(out + n, DL_ADDRESS_MAX - n, rest, strlen(rest));
}

static void print_tcp(char out[DL_ADDRESS_MAX], const struct dl_address *a)
{
	const char *format =
		strchr(a->host, ':') ? "tcp:%s%s[%s]:%s" : "tcp:%s%s%s:%s";
	char key[DL_KEY_TEXT + 1] = "";

	if (a->keyed)
		dl_key_print(key, a->key);
	snprintf(out, DL_ADDRESS_MAX, format, key, a->keyed ? "@" : "", a->host,
		a->port);
}

char *dl_address_print(char out[DL_ADDRESS_MAX], const struct dl_address *a)
{
	if (a->kind == DL_LINK_EXEC)
		print_rest(out, "exec:", a->command);
	else if (a->kind == DL_LINK_DIR)
		print_rest(out, "dir:", a->folder);
	else if (a->kind == DL_LINK_UNIX)
		snprintf(out, DL_ADDRESS_MAX, "unix:%s", a->path);
	else
		print_tcp(out, a);
	return out;
}

char *dl_address_show(char out[DL_ADDRESS_MAX], const struct dl_address *a)
{
	dl_address_print(out, a);
	return a->kind == DL_LINK_TCP ? cut_keys(out) : out;
}

/* "place: fact" with the address as place. */
static int at(const struct dl_address *a, struct dl_err *e)
{
	char text[DL_ADDRESS_MAX];

	return dl_at(e, "%s", dl_address_show(text, a));
}

static int new_socket(int family, int *fd, struct dl_err *e)
{
	*fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	return *fd < 0 ? dl_fail_sys(e, DL_OSERR, "socket") : 0;
}

static void close_socket(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int new_tcp(
	const struct dl_tcp *tcp, int family, int *fd, struct dl_err *e)
{
	int code = new_socket(family, fd, e);

	return code ? code : dl_tcp_apply(tcp, *fd, e);
}

static int is_loopback(const struct sockaddr *sa)
{
	if (sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = (const void *)sa;

		return ntohl(in->sin_addr.s_addr) >> 24 == 127;
	}
	return IN6_IS_ADDR_LOOPBACK(
		&((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr);
}

static int look_up(
	const struct dl_address *a, struct addrinfo **out, struct dl_err *e)
{
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_NUMERICSERV,
	};
	int error = getaddrinfo(a->host, a->port, &hints, out);

	return error ? dl_fail(e, DL_UNAVAILABLE, "%s", gai_strerror(error))
		     : 0;
}

/* The first address of a's host, in the system's order, if it is allowed. */
static int resolve(const struct dl_address *a, enum dl_insecure allowed,
	struct addrinfo **out, struct dl_err *e)
{
	if (a->own)
		allowed = DL_INSECURE_ANYWHERE;
	if (a->keyed && !a->own)
		return dl_fail(e, DL_USAGE, "a session needs --key");
	if (allowed == DL_INSECURE_NO)
		return dl_fail(e, DL_USAGE,
			"plain tcp needs --insecure; a session needs --key "
			"and tcp:KEY@HOST:PORT");
	if (look_up(a, out, e))
		return e->code;
	if (allowed == DL_INSECURE_ANYWHERE || is_loopback((*out)->ai_addr))
		return 0;
	freeaddrinfo(*out);
	return dl_fail(e, DL_USAGE,
		"not this machine: plain tcp across a network needs "
		"--insecure twice");
}

int dl_address_resolve(const struct dl_address *a, unsigned nth,
	struct dl_address *out, unsigned *count, struct dl_err *e)
{
	struct addrinfo *all, *ai;
	int error;

	*out = *a;
	*count = 1;
	if (a->kind != DL_LINK_TCP)
		return 0;
	if (look_up(a, &all, e))
		return at(a, e);
	for (*count = 0, ai = all; ai; ai = ai->ai_next)
		++*count;
	for (ai = all, nth %= *count; nth; nth--)
		ai = ai->ai_next;
	error = getnameinfo(ai->ai_addr, ai->ai_addrlen, out->host,
		sizeof(out->host), NULL, 0, NI_NUMERICHOST);
	freeaddrinfo(all);
	if (!error)
		return 0;
	dl_fail(e, DL_UNAVAILABLE, "%s", gai_strerror(error));
	return at(a, e);
}

static struct sockaddr_un unix_name(const struct dl_address *a)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	memcpy(sun.sun_path, a->path, strlen(a->path) + 1);
	return sun;
}

static int connect_to(
	const struct sockaddr *sa, socklen_t n, int fd, struct dl_err *e)
{
	if (connect(fd, sa, n) == 0 || errno == EINPROGRESS)
		return 0;
	return dl_fail_sys(e, DL_UNAVAILABLE, "connect");
}

static int connect_unix(const struct dl_address *a, int *fd, struct dl_err *e)
{
	struct sockaddr_un sun = unix_name(a);
	int code = new_socket(AF_UNIX, fd, e);

	return code ? code
		    : connect_to((struct sockaddr *)&sun, sizeof(sun), *fd, e);
}

static int connect_tcp(const struct dl_address *a, enum dl_insecure allowed,
	int *fd, struct dl_err *e)
{
	struct addrinfo *ai;
	int code;

	if (!strcmp(a->port, "0"))
		return dl_fail(e, DL_USAGE, "nobody can be at port 0");
	code = resolve(a, allowed, &ai, e);
	if (code)
		return code;
	code = new_tcp(&a->tcp, ai->ai_family, fd, e);
	if (!code)
		code = connect_to(ai->ai_addr, ai->ai_addrlen, *fd, e);
	freeaddrinfo(ai);
	return code;
}

int dl_address_connect(const struct dl_address *a, enum dl_insecure allowed,
	int *fd, struct dl_child *child, struct dl_err *e)
{
	int code = 0;

	*fd = -1;
	*child = (struct dl_child){0};
	switch (a->kind) {
	case DL_LINK_UNIX:
		code = connect_unix(a, fd, e);
		break;
	case DL_LINK_TCP:
		code = connect_tcp(a, allowed, fd, e);
		break;
	case DL_LINK_EXEC:
		code = dl_child_start(child, a->command, fd, e);
		break;
	case DL_LINK_DIR:
		code = dl_fail(e, DL_USAGE, "a folder answers nothing here");
		break;
	}
	if (!code)
		return 0;
	close_socket(fd);
	return at(a, e);
}

/* Removes a socket at which nobody listens any more. */
static int clear_path(const struct dl_address *a, struct dl_err *e)
{
	struct sockaddr_un sun = unix_name(a);
	struct stat st;
	int fd, answer;

	if (lstat(a->path, &st) < 0)
		return errno == ENOENT ? 0
				       : dl_fail_sys(e, DL_CANTCREAT, "stat");
	if (!S_ISSOCK(st.st_mode))
		return dl_fail(e, DL_CANTCREAT, "is there and no socket");
	if (new_socket(AF_UNIX, &fd, e))
		return e->code;
	answer = connect(fd, (struct sockaddr *)&sun, sizeof(sun));
	answer = answer == 0 ? 0 : errno;
	close(fd);
	if (answer != ECONNREFUSED)
		return dl_fail(e, DL_CANTCREAT, "is in use");
	if (unlink(a->path) < 0 && errno != ENOENT)
		return dl_fail_sys(e, DL_CANTCREAT, "removing a stale socket");
	return 0;
}

/* What lies at a's path; 0 for nothing. */
static uint64_t inode(const struct dl_address *a)
{
	struct stat st;

	return lstat(a->path, &st) < 0 ? 0 : st.st_ino;
}

static int listen_unix(struct dl_address *a, int *fd, struct dl_err *e)
{
	struct sockaddr_un sun = unix_name(a);
	int code = clear_path(a, e);

	if (!code)
		code = new_socket(AF_UNIX, fd, e);
	if (code)
		return code;
	/* Before bind, so that the path never has a wider mode. */
	if (fchmod(*fd, 0600) < 0 ||
		bind(*fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 ||
		chmod(a->path, 0600) < 0 || listen(*fd, BACKLOG) < 0)
		return dl_fail_sys(e, DL_CANTCREAT, "listen");
	a->inode = inode(a);
	return 0;
}

static int listen_tcp(struct dl_address *a, enum dl_insecure allowed, int *fd,
	struct dl_err *e)
{
	struct sockaddr_storage name;
	socklen_t n = sizeof(name);
	struct addrinfo *ai;
	int on = 1, code;

	code = resolve(a, allowed, &ai, e);
	if (code)
		return code;
	code = new_tcp(&a->tcp, ai->ai_family, fd, e);
	if (!code) {
		setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(*fd, ai->ai_addr, ai->ai_addrlen) < 0 ||
			listen(*fd, BACKLOG) < 0 ||
			getsockname(*fd, (struct sockaddr *)&name, &n) < 0)
			code = dl_fail_sys(e, DL_CANTCREAT, "listen");
	}
	freeaddrinfo(ai);
	if (!code && getnameinfo((struct sockaddr *)&name, n, NULL, 0, a->port,
			     sizeof(a->port), NI_NUMERICSERV))
		code = dl_fail(e, DL_CANTCREAT, "has no port");
	return code;
}

int dl_address_listen(struct dl_address *a, enum dl_insecure allowed, int *fd,
	struct dl_err *e)
{
	int code = 0;

	*fd = -1;
	switch (a->kind) {
	case DL_LINK_UNIX:
		code = listen_unix(a, fd, e);
		break;
	case DL_LINK_TCP:
		code = listen_tcp(a, allowed, fd, e);
		break;
	case DL_LINK_EXEC:
		code = dl_fail(e, DL_USAGE, "nobody can connect to a command");
		break;
	case DL_LINK_DIR:
		code = dl_fail(e, DL_USAGE, "nobody can connect to a folder");
		break;
	}
	if (!code)
		return 0;
	close_socket(fd);
	return at(a, e);
}

void dl_address_unlisten(const struct dl_address *a, int fd)
{
	if (a->kind == DL_LINK_UNIX && a->inode == inode(a))
		unlink(a->path);
	close(fd);
}

int dl_address_accept(int listener, int *fd, struct dl_err *e)
{
	*fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (*fd >= 0)
		return 0;
	switch (errno) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return dl_fail_sys(e, DL_OSERR, "accept");
	default:
		/* None waits, or the one that did is gone again. */
		return 0;
	}
}

int dl_address_host(char out[256], int fd)
{
	struct sockaddr_storage name;
	socklen_t n = sizeof(name);

	if (getpeername(fd, (struct sockaddr *)&name, &n) ||
		name.ss_family == AF_UNIX ||
		getnameinfo((struct sockaddr *)&name, n, out, 256, NULL, 0,
			NI_NUMERICHOST))
		return DL_NO;
	return 0;
}

char *dl_address_peer(char out[DL_PEER_MAX], int fd)
{
	struct sockaddr_storage name;
	socklen_t n = sizeof(name), cred_n;
	struct dl_address a = {.kind = DL_LINK_TCP};
	struct ucred cred;

	if (getpeername(fd, (struct sockaddr *)&name, &n) == 0) {
		cred_n = sizeof(cred);
		if (name.ss_family == AF_UNIX &&
			getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred,
				&cred_n) == 0) {
			snprintf(out, DL_PEER_MAX, "unix:uid=%u,pid=%d",
				(unsigned)cred.uid, (int)cred.pid);
			return out;
		}
		if (name.ss_family != AF_UNIX &&
			getnameinfo((struct sockaddr *)&name, n, a.host,
				sizeof(a.host), a.port, sizeof(a.port),
				NI_NUMERICHOST | NI_NUMERICSERV) == 0)
			return dl_address_print(out, &a);
	}
	snprintf(out, DL_PEER_MAX, "unknown peer");
	return out;
}
