/* Offers: what peers tell of where to connect to, and nothing worse. */
#include <string.h>

#include "link/offer.h"
#include "tests/tap.h"

#define KEY "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="

static const struct {
	const char *link, *host; /* NULL: refused */
} links[] = {
	{"tcp:" KEY "@host-1.example:7077", "host-1.example"},
	{"tcp:" KEY "@[fe80::1%eth0]:7077", "fe80::1%eth0"},
	{"tcp:" KEY "@10.0.0.1:1", "10.0.0.1"},
	{"tcp:" KEY "@:7077", ""},
	{"tcp:" KEY "@:0", NULL},
	{"tcp:" KEY "@10.0.0.1:0", NULL},
	{"tcp:" KEY "@10.0.0.1", NULL},
	{"tcp:" KEY "@a b:1", NULL},
	{"tcp:" KEY "@a\tb:1", NULL},
	{"tcp:" KEY "@a/b:1", NULL},
	{"tcp:" KEY "@$(id):1", NULL},
	{"tcp:" KEY "@@:1", NULL},
	{"tcp:" KEY "@", NULL},
	{"tcp:YWFh@host:1", NULL},
	{"tcp:@host:1", NULL},
	{"tcp:@:1", NULL},
	{"tcp:host:1", NULL},
	{"unix:/run/" KEY "@:1", NULL},
	{"exec:nc " KEY "@:1", NULL},
	{"dir:/" KEY "@:1", NULL},
	{"", NULL},
};

static void test_links(void)
{
	for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
		struct dl_address a;
		struct dl_err e = {0};
		int code = dl_offer_link(&a, links[i].link, &e);

		if (links[i].host)
			ok(!code && a.kind == DL_LINK_TCP && a.keyed &&
					!strcmp(a.host, links[i].host),
				"taken: %s %s", links[i].link, e.text);
		else
			ok(code == DL_PROTOCOL && e.text[0], "refused: %s",
				e.text);
	}
}

static void test_long(void)
{
	char link[600];
	struct dl_address a;

	for (int n = 250; n < 500; n++) {
		snprintf(link, sizeof link, "tcp:" KEY "@%0*d:65535", n, 1);
		if (!dl_offer_link(&a, link, NULL) != (n < 256))
			break;
		if (n == 499)
			ok(1, "hosts of 255 bytes and no more");
	}
}

static void test_list(void)
{
	static const char text[] = "a 12 tcp:" KEY "@h:1\n"
				   "b 12 unix:/run/b\n"
				   "c 12 exec:id\n"
				   "d 12 tcp:h:1\n"
				   "e tcp:" KEY "@h:1\n"
				   "../f 12 tcp:" KEY "@h:1\n"
				   "g -1 tcp:" KEY "@h:1\n"
				   "h 12 tcp:" KEY "@:1\n"
				   "i 12 tcp:" KEY "@h:1 more\n"
				   "\n"
				   "j 18446744073709551615 tcp:" KEY "@[::1]:2";
	const char *at = text;
	struct dl_offer offer;
	struct dl_buf again = DL_BUF_INIT;
	int n = 0;

	while (dl_offer_next(&offer, &at)) {
		n++;
		dl_offer_write(&again, &offer);
	}
	ok(n == 2 && !*at, "two of eleven lines are offers");
	ok(!strcmp(dl_buf_cstr(&again),
		   "a 12 tcp:" KEY "@h:1\n"
		   "j 18446744073709551615 tcp:" KEY "@[::1]:2\n"),
		"written as they were read");
	at = "";
	ok(!dl_offer_next(&offer, &at), "none in an empty list");
	dl_buf_free(&again);
}

int main(void)
{
	test_links();
	test_long();
	test_list();
	return done_testing();
}
