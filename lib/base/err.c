#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void vset(struct dl_err *e, int code, const char *fmt, va_list ap)
{
	char text[sizeof e->text];

	/* Through a copy, since an argument may be e's own text. */
	vsnprintf(text, sizeof text, fmt, ap);
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 32 || *p == 127)
			*p = '?';
	e->code = code;
	memcpy(e->text, text, sizeof text);
}

int dl_fail(struct dl_err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vset(e, code, fmt, ap);
	va_end(ap);
	return code;
}

int dl_fail_sys(struct dl_err *e, int code, const char *fmt, ...)
{
	const char *reason = strerror(errno);
	va_list ap;
	size_t n;

	if (!e)
		return code;
	va_start(ap, fmt);
	vset(e, code, fmt, ap);
	va_end(ap);
	n = strlen(e->text);
	snprintf(e->text + n, sizeof e->text - n, ": %s", reason);
	return code;
}

int dl_at(struct dl_err *e, const char *fmt, ...)
{
	struct dl_err place;
	va_list ap;
	int n;

	if (!e)
		return DL_SOFTWARE;
	va_start(ap, fmt);
	vset(&place, e->code, fmt, ap);
	va_end(ap);
	n = (int)strlen(place.text);
	snprintf(place.text + n, sizeof place.text - n, ": %.*s",
		(int)(sizeof e->text - 3) - n, e->text);
	*e = place;
	return e->code;
}

char *dl_scrub(char *out, unsigned long size, const char *s, unsigned long n)
{
	static const char hex[] = "0123456789abcdef";
	unsigned long o = 0;

	for (unsigned long i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		int plain = c >= 32 && c < 127 && c != '\\' && c != '"';

		if (o + (plain ? 1 : 4) + 4 > size) {
			memcpy(out + o, "...", sizeof "...");
			return out;
		}
		if (plain) {
			out[o++] = (char)c;
		} else {
			out[o++] = '\\';
			out[o++] = 'x';
			out[o++] = hex[c >> 4];
			out[o++] = hex[c & 15];
		}
	}
	out[o] = 0;
	return out;
}
