/*
 * Who may come in, in invented time.
 */
#include "link/door.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "tests/tap.h"

static const int64_t start = 1000 * DL_SECOND;
static struct dl_door door;

static int knock(const char *text, int64_t now)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return dl_door_knock(&door, (struct sockaddr *)&in, now);
	if (inet_pton(AF_INET6, text, &in6.sin6_addr) != 1)
		return -1;
	return dl_door_knock(&door, (struct sockaddr *)&in6, now);
}

/* How many of n knocks are answered. */
static int knocks(const char *text, int n, int64_t now)
{
	int in = 0;

	while (n--)
		in += knock(text, now);
	return in;
}

static void begin(void)
{
	memset(&door, 0, sizeof door);
}

static void test_bucket(void)
{
	begin();
	ok(knocks("192.0.2.1", 1000, start) == DL_DOOR_BURST,
		"of a thousand at once a burst gets in");
	ok(knocks("192.0.2.2", 8, start) == 8, "and eight of its neighbour's");
	ok(knocks("192.0.2.1", 1000, start + DL_SECOND) == DL_DOOR_RATE,
		"a second later some more");
	ok(knocks("192.0.2.1", 1000, start + 3600 * DL_SECOND) == DL_DOOR_BURST,
		"an hour later a burst and no more");
	ok(knocks("192.0.2.1", 1, start) == 0,
		"a clock that goes back opens nothing");
}

static void test_prefixes(void)
{
	begin();
	ok(knocks("2001:db8:1:2:3::4", 1000, start) == DL_DOOR_BURST,
		"an IPv6 address gets a burst");
	ok(knocks("2001:db8:1:2:ffff::1", 8, start) == 0,
		"its whole network shares it");
	ok(knocks("2001:db8:1:3::4", 8, start) == 8, "the next has its own");
	ok(knocks("192.0.2.7", 1000, start) == DL_DOOR_BURST,
		"an IPv4 address gets a burst");
	ok(knocks("::ffff:192.0.2.7", 8, start) == 0,
		"which it does not get again as a mapped one");
	ok(knocks("::ffff:192.0.2.8", 8, start) == 8,
		"other mapped ones are others");
}

static void test_local(void)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int in = 0;

	begin();
	for (int i = 0; i < 1000; i++)
		in += dl_door_knock(&door, (struct sockaddr *)&un, start);
	ok(in == 1000, "local ones are not counted");
}

/* Addresses enough to fill the table many times over. */
static void test_many(void)
{
	char text[32];
	int in = 0;

	begin();
	knocks("192.0.2.1", 1000, start);
	for (int i = 0; i < 40 * DL_DOOR_SOURCES; i++) {
		snprintf(text, sizeof text, "10.%d.%d.%d", i >> 16,
			i >> 8 & 255, i & 255);
		in += knock(text, start);
	}
	ok(in == 40 * DL_DOOR_SOURCES, "each of many sources gets in once");
	ok(knocks("192.0.2.1", 8, start) == 0,
		"they do not make one that came too often forgotten");
	ok(knocks("198.51.100.1", 8, start) == 8,
		"and one more is as welcome as before");
}

int main(void)
{
	test_bucket();
	test_prefixes();
	test_local();
	test_many();
	return done_testing();
}
