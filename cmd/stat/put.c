#include "cmd/stat/put.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/num.h"

void put_count(struct dl_buf *out, uint64_t n)
{
	dl_buf_printf(out, "%" PRIu64, n);
}

void put_real(struct dl_buf *out, double v, int digits, int exact)
{
	if (isnan(v))
		dl_buf_byte(out, '-');
	else if (exact)
		dl_buf_printf(out, "%.9g", v);
	else
		dl_buf_printf(out, "%.*f", digits, v);
}

void put_share(struct dl_buf *out, double share, int exact)
{
	if (isnan(share))
		dl_buf_byte(out, '-');
	else if (exact)
		dl_buf_printf(out, "%.6g", share);
	else
		dl_buf_printf(out, "%.0f%%", 100 * share);
}

void put_bytes(struct dl_buf *out, uint64_t bytes, int exact)
{
	char text[DL_HUMAN];

	if (exact)
		put_count(out, bytes);
	else
		dl_buf_str(out, dl_human_size(text, bytes));
}

void put_duration(struct dl_buf *out, double ns, int exact)
{
	char text[DL_HUMAN];

	if (exact)
		dl_buf_printf(out, "%.9g", ns / 1e9);
	else
		dl_buf_str(out, dl_human_duration(text, (int64_t)ns));
}

void put_time(struct dl_buf *out, int64_t wall, int64_t last, int exact)
{
	char text[40];
	time_t t = (time_t)(wall / DL_SECOND);
	struct tm tm;

	if (!wall || !gmtime_r(&t, &tm))
		dl_buf_byte(out, '-');
	else if (exact &&
		 strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm))
		dl_buf_str(out, text);
	else
		put_duration(out, (double)(last - wall), 0);
}
