/*
 * strangers PORT N WHAT: keeps N connections to 127.0.0.1:PORT, from a handful
 * of addresses, and comes again whenever one of them is hung up. Each says
 * nothing ("silent"), a byte of a message a second ("slow"), that more comes
 * than there is ("huge"), or asks for the model and does not read ("deaf").
 * Prints how many were hung up, when told to stop.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "link/frame.h"
#include "link/message.h"

enum { SOURCES = 4 };

static volatile sig_atomic_t stopped;
static struct sockaddr_in syncer = {.sin_family = AF_INET};
static unsigned long hung_up;

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

/* What one of them says, all of it. */
static void words(struct dl_buf *out, const char *what)
{
	static const unsigned char huge[] = {
		9, 0, DL_CHANNEL_CONTROL, 0, 0, 0, 0, 0, 0, 0, 0x80};
	struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_OBSERVER,
		.codecs = "f32"};
	struct dl_buf record = DL_BUF_INIT;
	unsigned char head[DL_FRAME_HEAD];

	if (!strcmp(what, "huge"))
		dl_buf_add(out, huge, sizeof huge);
	if (strcmp(what, "slow") != 0 && strcmp(what, "deaf") != 0)
		return;
	dl_message_pack(&hello, &record);
	dl_frame_head(head, DL_CHANNEL_CONTROL, record.len);
	dl_buf_add(out, head, sizeof head);
	dl_buf_add(out, record.data, record.len);
	dl_buf_free(&record);
}

static int come(size_t i)
{
	struct sockaddr_in own = {.sin_family = AF_INET};
	int small = 4096, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	own.sin_addr.s_addr = htonl(0x7f000101 + i % SOURCES);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
	if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof own) ||
		(connect(fd, (struct sockaddr *)&syncer, sizeof syncer) &&
			errno != EINPROGRESS)) {
		perror("strangers");
		exit(1);
	}
	return fd;
}

struct stranger {
	size_t said;
	int64_t next; /* when it says more */
};

/* Hung up on: it comes again, a second later. The deaf do not even notice. */
static void look(struct pollfd *p, struct stranger *s, size_t i)
{
	char heard[256];

	if (p->fd < 0 && dl_now() >= s->next) {
		p->fd = come(i);
		*s = (struct stranger){0};
	}
	if (!(p->revents & (POLLIN | POLLHUP | POLLERR)))
		return;
	if (recv(p->fd, heard, sizeof heard, 0) > 0)
		return;
	close(p->fd);
	p->fd = -1;
	s->next = dl_now() + DL_SECOND;
	hung_up++;
}

static void talk(struct pollfd *p, struct stranger *s,
	const struct dl_buf *words, int slow)
{
	size_t n = words->len - s->said;
	ssize_t sent;

	if (!n || p->fd < 0 || dl_now() < s->next)
		return;
	sent = send(p->fd, words->data + s->said, slow ? 1 : n, MSG_NOSIGNAL);
	if (sent > 0)
		s->said += (size_t)sent;
	s->next = dl_now() + (slow ? DL_SECOND : 0);
}

int main(int argc, char **argv)
{
	struct dl_buf said = DL_BUF_INIT;
	struct stranger *stranger;
	struct pollfd *p;
	int slow, deaf;
	size_t n;

	if (argc != 4)
		return 64;
	signal(SIGTERM, stop);
	syncer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	syncer.sin_port = htons((uint16_t)atoi(argv[1]));
	n = (size_t)atoi(argv[2]);
	slow = !strcmp(argv[3], "slow");
	deaf = !strcmp(argv[3], "deaf");
	words(&said, argv[3]);
	p = dl_alloc_array(n, sizeof *p);
	stranger = dl_alloc_array(n, sizeof *stranger);
	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){come(i), deaf ? 0 : POLLIN, 0};
	while (!stopped) {
		for (size_t i = 0; i < n; i++)
			talk(&p[i], &stranger[i], &said, slow);
		poll(p, (nfds_t)n, 100);
		for (size_t i = 0; i < n; i++)
			look(&p[i], &stranger[i], i);
	}
	printf("%lu\n", hung_up);
	free(p);
	free(stranger);
	dl_buf_free(&said);
	return 0;
}
