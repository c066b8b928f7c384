#include "cmd/stat/source.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cmd/stat/live.h"

int source_open(struct source *s, const char *path, struct dl_err *e)
{
	int code = 0;

	*s = (struct source){.fd = STDIN_FILENO};
	s->path = strcmp(path, "-") != 0 ? path : NULL;
	s->place = s->path ? s->path : "standard input";
	dl_stat_init(&s->stat);
	if (s->path)
		code = dl_open_read(s->path, &s->fd, e);
	dl_tape_reader_init(&s->reader, s->fd, s->place);
	return code;
}

void source_open_live(
	struct source *s, const struct dl_address *a, enum dl_insecure allowed)
{
	*s = (struct source){.from = a, .allowed = allowed, .fd = -1};
	dl_stat_init(&s->stat);
}

void source_close(struct source *s)
{
	dl_tape_line_release(&s->line);
	dl_tape_reader_release(&s->reader);
	dl_stat_release(&s->stat);
	if (s->path && s->fd >= 0)
		close(s->fd);
}

static int read_on(struct source *s, struct dl_err *e)
{
	int rc;

	while (!(rc = dl_tape_next(&s->reader, &s->line, e)))
		dl_stat_line(&s->stat, &s->line);
	return rc == DL_NO ? 0 : rc;
}

/* Is there another file of that name, after this one was moved away? */
static int has_turned(const struct source *s)
{
	struct stat now, open;

	return s->path && !stat(s->path, &now) && !fstat(s->fd, &open) &&
	       (now.st_ino != open.st_ino || now.st_dev != open.st_dev);
}

/* The syncer has written all of the old file before it makes the new one. */
static int turn(struct source *s, struct dl_err *e)
{
	int fd, code = read_on(s, e);

	if (!code)
		code = dl_open_read(s->path, &fd, e);
	if (code)
		return code;
	dl_tape_reader_turn(&s->reader, fd);
	close(s->fd);
	s->fd = fd;
	return read_on(s, e);
}

static const struct dl_stat *look_live(struct source *s, struct dl_err *e)
{
	dl_stat_release(&s->stat);
	return live_fetch(s->from, s->allowed, &s->stat, e) ? NULL : &s->stat;
}

const struct dl_stat *source_look(struct source *s, struct dl_err *e)
{
	if (s->from)
		return look_live(s, e);
	if (read_on(s, e) || (has_turned(s) && turn(s, e)))
		return NULL;
	if (!s->stat.totals.starts) {
		dl_fail(e, DL_DATA, "%s: no start of a run in it", s->place);
		return NULL;
	}
	dl_stat_settle(&s->stat);
	return &s->stat;
}

int source_torn(const struct source *s)
{
	return s->reader.torn;
}
