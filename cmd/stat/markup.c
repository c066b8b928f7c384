#include "cmd/stat/markup.h"

#include <math.h>
#include <stdio.h>

#include "base/num.h"

void markup_text(struct dl_buf *out, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '&':
			dl_buf_str(out, "&amp;");
			break;
		case '<':
			dl_buf_str(out, "&lt;");
			break;
		case '>':
			dl_buf_str(out, "&gt;");
			break;
		case '"':
			dl_buf_str(out, "&quot;");
			break;
		default:
			dl_buf_byte(out, *s);
		}
}

/* Without zeros at the end. */
static void put_digits(struct dl_buf *out, double v)
{
	double size = fabs(v);

	dl_buf_printf(out, "%.*g", size >= 100 ? 4 : 3, v);
}

static void put_number(struct dl_buf *out, double v)
{
	static const char *const suffix[] = {"", "k", "M", "G", "T", "P"};
	size_t i = 0;

	if (fabs(v) < 9999.5 && fabs(v) >= 999.5) {
		dl_buf_printf(out, "%.0f", v);
		return;
	}
	while (fabs(v) >= 999.5 && i + 1 < sizeof suffix / sizeof *suffix) {
		v /= 1000;
		i++;
	}
	put_digits(out, v);
	dl_buf_str(out, suffix[i]);
}

/* The parts that are not 0, of which there are two at most. */
static void put_seconds(struct dl_buf *out, double v)
{
	static const struct {
		int64_t seconds;
		char letter;
	} unit[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};
	int64_t left = llround(v);
	int parts = 0;

	if (v < 1 && v > 0) {
		dl_buf_printf(out, "%.0fms", v * 1000);
		return;
	}
	for (size_t i = 0; i < sizeof unit / sizeof *unit && parts < 2; i++) {
		int64_t n = left / unit[i].seconds;

		if (!n && parts)
			break;
		if (!n)
			continue;
		dl_buf_printf(out, "%lld%c", (long long)n, unit[i].letter);
		left %= unit[i].seconds;
		parts++;
	}
	if (!parts)
		dl_buf_str(out, "0");
}

void markup_figure(struct dl_buf *out, double v, enum unit unit)
{
	char text[DL_HUMAN];

	if (!isfinite(v)) {
		dl_buf_str(out, "\xe2\x80\x93");
		return;
	}
	switch (unit) {
	case UNIT_TIME:
		put_seconds(out, v);
		break;
	case UNIT_SHARE:
		dl_buf_printf(out, "%.3g%%", 100 * v);
		break;
	case UNIT_BYTES:
		dl_buf_str(out, dl_human_size(text, (uint64_t)v));
		break;
	case UNIT_LOSS:
		dl_buf_printf(out, "%.4g", v);
		break;
	case UNIT_NUMBER:
		put_number(out, v);
		break;
	}
}
