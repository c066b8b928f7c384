#include "base/utf8.h"

size_t dl_utf8_length(const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	/* The second byte's range excludes overlong forms and surrogates. */
	unsigned low = 0x80, high = 0xbf;
	size_t length;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	length = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (n < length || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return length;
}

int dl_utf8_valid(const char *s, size_t n)
{
	while (n) {
		size_t length = dl_utf8_length(s, n);

		if (!length)
			return 0;
		s += length;
		n -= length;
	}
	return 1;
}
