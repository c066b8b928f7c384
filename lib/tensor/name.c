#include "tensor/name.h"

#include "base/utf8.h"

void dl_name_escape(struct dl_buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '\\')
			dl_buf_str(out, "\\\\");
		else if (c == '\t')
			dl_buf_str(out, "\\t");
		else if (c == '\n')
			dl_buf_str(out, "\\n");
		else if (c < ' ' || c == 0x7f || (c == '#' && !i))
			dl_buf_printf(out, "\\x%02x", c);
		else
			dl_buf_byte(out, c);
	}
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* How many bytes of s the character or escape takes; 0 when it is bad. Only
 * ASCII comes out of \xNN, so that escapes cannot make bad UTF-8. */
static size_t unescape(const char *s, size_t n, int *c)
{
	int high, low;

	if (n < 2)
		return 0;
	if (s[1] == '\\' || s[1] == 't' || s[1] == 'n') {
		*c = s[1] == 't' ? '\t' : s[1] == 'n' ? '\n' : '\\';
		return 2;
	}
	if (s[1] != 'x' || n < 4)
		return 0;
	high = digit(s[2]);
	low = digit(s[3]);
	if (high < 0 || high > 7 || low < 0)
		return 0;
	*c = high * 16 + low;
	return 4;
}

int dl_name_unescape(struct dl_buf *out, const char *s, size_t n)
{
	if (!dl_utf8_valid(s, n))
		return -1;
	for (size_t i = 0; i < n;) {
		int c = s[i];
		size_t used = c == '\\' ? unescape(s + i, n - i, &c) : 1;

		if (!used)
			return -1;
		dl_buf_byte(out, c);
		i += used;
	}
	return 0;
}
