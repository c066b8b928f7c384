/*
 * Any bytes as a tape: each line is refused, or comes back as it was written;
 * and the core that is given them counts on.
 */
#include <stdlib.h>
#include <unistd.h>

#include "figures.h"
#include "fuzz.h"
#include "same.h"

enum {
	PIPE_ROOM = 4096,
	FRAGMENTS = 64, /* more costs memory and finds nothing */
};

static void put_line(struct dl_buf *out, const struct dl_tape_line *l)
{
	if (l->kind == DL_TAPE_START)
		dl_tape_write_start(out, &l->start, l->wall, l->now);
	else
		dl_tape_write_event(out, &l->event, &l->made,
			(uint32_t)l->versions, l->wall);
}

static void check_spelling(const struct dl_tape_line *l)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;
	struct dl_tape_line again;

	put_line(&once, l);
	if (dl_tape_parse_line(&again, (char *)once.data, once.len, NULL))
		abort();
	put_line(&twice, &again);
	check_same(&once, &twice);
	dl_tape_line_release(&again);
}

/* What it came to goes through its text unchanged. */
static void check_figures(struct dl_stat *s)
{
	if (!s->totals.starts)
		return;
	dl_stat_settle(s);
	figures_cross(s);
}

static void read_tape(int fd)
{
	struct dl_tape_line l = {0};
	struct dl_err e = {0};
	struct dl_tape_reader r;
	struct dl_stat s;
	int rc;

	dl_stat_init(&s);
	dl_tape_reader_init(&r, fd, "fuzz");
	while (!(rc = dl_tape_next(&r, &l, &e))) {
		check_spelling(&l);
		if (r.fragments > FRAGMENTS)
			break;
		dl_stat_line(&s, &l);
	}
	if (rc && rc != DL_NO && (rc != DL_DATA || !e.text[0]))
		abort();
	check_figures(&s);
	dl_stat_release(&s);
	dl_tape_line_release(&l);
	dl_tape_reader_release(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	int fd[2];

	if (n > PIPE_ROOM || pipe(fd))
		return 0;
	if (write(fd[1], data, n) != (ssize_t)n)
		abort();
	close(fd[1]);
	read_tape(fd[0]);
	close(fd[0]);
	return 0;
}
