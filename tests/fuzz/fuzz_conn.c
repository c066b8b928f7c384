/*
 * Any bytes to a connection, at once and in pieces: it hears the same and ends
 * in the same way.
 */
#include "fuzz.h"
#include "heard.h"

enum { LONGEST = 65536 }; /* input, less than a socket holds */

static struct heard hear(const uint8_t *data, size_t n, size_t piece)
{
	struct link k;
	size_t part;

	link_open(&k, NULL);
	for (; n; data += part, n -= part) {
		part = n < piece ? n : piece;
		link_say(&k, data, part);
	}
	return link_close(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct heard once, pieces;

	if (n > LONGEST)
		return 0;
	once = hear(data, n, LONGEST);
	pieces = hear(data, n, n / 100 + 1);
	if (!heard_same(&once, &pieces))
		abort();
	return 0;
}
