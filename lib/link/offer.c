#include "link/offer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* What names and numbers of hosts are made of; no space, which ends a link in a
 * list of them. */
static const char host_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "abcdefghijklmnopqrstuvwxyz"
				 "0123456789.-_:%";

static int bad(const char *s, struct dl_err *e)
{
	char shown[128];

	return dl_fail(e, DL_PROTOCOL, "\"%s\" is not tcp:KEY@HOST:PORT",
		dl_scrub(shown, sizeof shown, s, strlen(s)));
}

/* The same link with a host, where s has none: in out. */
static void put_host(char out[DL_ADDRESS_MAX], const char *s)
{
	const char *at = strchr(s, '@');

	snprintf(out, DL_ADDRESS_MAX, "%.*s@x%s", (int)(at - s), s, at + 1);
}

int dl_offer_link(struct dl_address *a, const char *s, struct dl_err *e)
{
	const char *at = strchr(s, '@');
	char filled[DL_ADDRESS_MAX];
	int empty = at && at[1] == ':';

	if (strncmp(s, "tcp:", 4) != 0 || strlen(s) >= sizeof filled - 1)
		return bad(s, e);
	if (empty)
		put_host(filled, s);
	if (dl_address_parse(a, empty ? filled : s, NULL) || !a->keyed ||
		a->host[strspn(a->host, host_bytes)] || !strcmp(a->port, "0"))
		return bad(s, e);
	if (empty)
		a->host[0] = '\0';
	return 0;
}

void dl_offer_write(struct dl_buf *out, const struct dl_offer *offer)
{
	char link[DL_ADDRESS_MAX];

	dl_buf_printf(out, "%s %" PRIu64 " %s\n", offer->name, offer->clock,
		dl_address_print(link, &offer->address));
}

/* A word of line that ends in a space; what follows it, or NULL when it has
 * size bytes or more. */
static const char *take_word(char *out, size_t size, const char *line)
{
	size_t n = strcspn(line, " ");

	if (line[n] != ' ' || n >= size)
		return NULL;
	memcpy(out, line, n);
	out[n] = '\0';
	return line + n + 1;
}

static int parse_line(struct dl_offer *offer, const char *line)
{
	char clock[24];

	line = take_word(offer->name, sizeof offer->name, line);
	if (!line || !dl_name_ok(offer->name, strlen(offer->name)))
		return 0;
	line = take_word(clock, sizeof clock, line);
	return line && !dl_parse_u64(clock, 0, UINT64_MAX, &offer->clock) &&
	       !dl_offer_link(&offer->address, line, NULL) &&
	       *offer->address.host;
}

int dl_offer_next(struct dl_offer *offer, const char **text)
{
	char line[DL_NAME_MAX + 24 + DL_ADDRESS_MAX];

	while (**text) {
		size_t n = strcspn(*text, "\n");
		int fits = n < sizeof line;

		if (fits) {
			memcpy(line, *text, n);
			line[n] = '\0';
		}
		*text += n + ((*text)[n] != '\0');
		if (fits && parse_line(offer, line))
			return 1;
	}
	return 0;
}
