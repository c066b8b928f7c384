/*
 * switch [-b] DELAY NETNS:DEVICE NETNS:DEVICE
 *
 * A long cable: makes a TAP device of that name in each of two network
 * namespaces (paths such as /proc/77/ns/net) and carries what goes into the
 * one out of the other, DELAY later, until it is killed. The devices go with
 * it. Rate and loss are the system's to add, with tbf and nft.
 *
 * With -b (big) the devices take packets of 64 KiB without checksums, as
 * a network card that segments does, so that 1 Gbit/s costs little; without,
 * each packet is one of the wire, which loss shall meet one by one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"

enum {
	PACKET = 65536 + 64, /* the largest, with its headers */
	RING = 32 << 20,     /* bytes under way in one direction */
	BATCH = 64,	     /* packets read before any is due again */
};

struct packet {
	int64_t due;
	size_t n; /* 0: the rest of the ring is not used */
	unsigned char data[];
};

struct direction {
	int from, to;
	unsigned char *ring;
	size_t first, end; /* packets under way; the same: none */
};

static void die(const char *what)
{
	fprintf(stderr, "switch: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_tap(const char *netns, const char *name, int big)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	unsigned offload = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6;
	int ns = open(netns, O_RDONLY | O_CLOEXEC), fd;

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		die(netns);
	close(ns);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", name);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &ifr))
		die(name);
	if (big && ioctl(fd, TUNSETOFFLOAD, offload))
		die("offload");
	return fd;
}

static int open_end(char *end, int big)
{
	char *colon = strrchr(end, ':');

	if (!colon) {
		errno = EINVAL;
		die(end);
	}
	*colon = '\0';
	return open_tap(end, colon + 1, big);
}

static size_t size_of(size_t n)
{
	return (sizeof(struct packet) + n + 7) & ~(size_t)7;
}

static struct packet *packet_at(const struct direction *d, size_t at)
{
	return (void *)(d->ring + at);
}

/* Where the next packet goes; NULL when the ring is full. */
static struct packet *free_place(struct direction *d)
{
	size_t need = size_of(PACKET) + sizeof(struct packet);

	if (d->first > d->end)
		return d->first - d->end > need ? packet_at(d, d->end) : NULL;
	if (RING - d->end >= need)
		return packet_at(d, d->end);
	if (d->first <= need)
		return NULL;
	packet_at(d, d->end)->n = 0;
	d->end = 0;
	return packet_at(d, 0);
}

static void take(struct direction *d, int64_t delay)
{
	for (int i = 0; i < BATCH; i++) {
		struct packet *p = free_place(d);
		static unsigned char lost[PACKET];
		ssize_t n = read(d->from, p ? p->data : lost, PACKET);

		if (n <= 0)
			return;
		if (!p)
			continue;
		p->due = dl_now() + delay;
		p->n = (size_t)n;
		d->end += size_of(p->n);
	}
}

/* Gives what is due at now; when the next is, INT64_MAX for none. */
static int64_t give(struct direction *d, int64_t now)
{
	while (d->first != d->end) {
		struct packet *p = packet_at(d, d->first);

		if (!p->n) {
			d->first = 0;
			continue;
		}
		if (p->due > now)
			return p->due;
		/* A device that is down loses it, as a cable would. */
		(void)!write(d->to, p->data, p->n);
		d->first += size_of(p->n);
	}
	return INT64_MAX;
}

static void wait_until(struct pollfd fd[2], int64_t until)
{
	int64_t left = until - dl_now();
	struct timespec t;

	if (left < 0)
		left = 0;
	t.tv_sec = left / DL_SECOND;
	t.tv_nsec = left % DL_SECOND;
	ppoll(fd, 2, until == INT64_MAX ? NULL : &t, NULL);
}

static void carry(int a, int b, int64_t delay)
{
	struct direction d[2] = {{.from = a, .to = b}, {.from = b, .to = a}};
	struct pollfd fd[2] = {
		{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};

	for (int i = 0; i < 2; i++)
		d[i].ring = dl_alloc(RING);
	for (;;) {
		int64_t now = dl_now(), next = INT64_MAX;

		for (int i = 0; i < 2; i++) {
			int64_t due = give(&d[i], now);

			next = due < next ? due : next;
		}
		wait_until(fd, next);
		for (int i = 0; i < 2; i++)
			if (fd[i].revents & POLLIN)
				take(&d[i], delay);
	}
}

int main(int argc, char **argv)
{
	/* What others do on this machine shall not delay packets. */
	struct sched_param first = {.sched_priority = 1};
	int big = argc > 1 && strcmp(argv[1], "-b") == 0;
	int64_t delay;
	int a, b;

	argv += big;
	if (argc - big != 4 || dl_parse_duration(argv[1], &delay)) {
		fputs("usage: switch [-b] DELAY NETNS:DEVICE NETNS:DEVICE\n",
			stderr);
		return 64;
	}
	a = open_end(argv[2], big);
	b = open_end(argv[3], big);
	sched_setscheduler(0, SCHED_FIFO, &first);
	carry(a, b, delay);
}
