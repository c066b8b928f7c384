/* What each member did when: a stretch of time a line. */
#include "cmd/stat/put.h"
#include "cmd/stat/sheet.h"
#include "cmd/stat/spans.h"

static void put_span(struct dl_buf *out, const struct dl_stat *s, size_t i,
	const struct span *span)
{
	double width = (double)s->history.width;

	dl_buf_printf(out, "%s\t%zu\t", s->member[i].name, i);
	put_duration(out, (double)span->first * width, 1);
	dl_buf_byte(out, '\t');
	put_duration(out, (double)span->end * width, 1);
	dl_buf_printf(out, "\t%s\n", dl_stat_state_words[span->state]);
}

static void put_all(struct dl_buf *out, const struct dl_stat *s)
{
	dl_buf_str(out, "# name\tnumber\tfrom\tto\tstate\n");
	for (size_t i = 0; i < s->members; i++) {
		struct span span = {0};

		while (span_next(s->member + i, &span))
			put_span(out, s, i, &span);
	}
}

const struct sheet sheet_timeline = {.name = "timeline", .whole = put_all};
