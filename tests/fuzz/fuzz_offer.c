/*
 * Any text as a link that a peer tells of, and as a list of offers: what is
 * taken names a host and a key, and is written as what means the same.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "link/offer.h"
#include "same.h"

static void check_link(const char *s)
{
	struct dl_err e = {0};
	struct dl_address a;

	if (dl_offer_link(&a, s, &e)) {
		if (e.code != DL_PROTOCOL || !e.text[0])
			abort();
	} else if (a.kind != DL_LINK_TCP || !a.keyed ||
		   strpbrk(a.host, " \t\r\n/$'\"\\;") ||
		   strcmp(a.port, "0") == 0) {
		abort();
	}
}

/* All offers of a text; how many. */
static unsigned gather(struct dl_buf *out, const char *text)
{
	struct dl_offer offer;
	unsigned n = 0;

	while (dl_offer_next(&offer, &text)) {
		dl_offer_write(out, &offer);
		n++;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;
	char *s = dl_strndup((const char *)data, n);

	check_link(s);
	if (gather(&once, s) != gather(&twice, dl_buf_cstr(&once)))
		abort();
	check_same(&once, &twice);
	free(s);
	return 0;
}
