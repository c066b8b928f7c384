#include "cmd/run/seen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"

enum { SEEN_MAX = 1 << 28 };

static void add(struct seen *s, const char *path, const char *mark, int64_t at)
{
	struct seen_file *f;

	if (!(s->files & (s->files - 1)))
		s->file = dl_resize(
			s->file, s->files ? 2 * s->files : 1, sizeof *s->file);
	f = &s->file[s->files++];
	*f = (struct seen_file){.path = dl_strdup(path), .at = at};
	snprintf(f->mark, sizeof f->mark, "%s", mark);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct seen_file *)a)->path,
		((const struct seen_file *)b)->path);
}

/* A line: TIME, MARK and PATH with tabs between. */
static void take_line(struct seen *s, char *line)
{
	char *mark = strchr(line, '\t'), *path;
	uint64_t at;

	path = mark ? strchr(mark + 1, '\t') : NULL;
	if (!path)
		return;
	*mark++ = *path++ = '\0';
	if (!dl_parse_u64(line, 0, INT64_MAX, &at))
		add(s, path, mark, (int64_t)at);
}

void seen_open(struct seen *s, char *path)
{
	struct dl_buf text = DL_BUF_INIT;
	char *line, *rest = NULL;

	*s = (struct seen){.path = path};
	if (!dl_read_file(path, SEEN_MAX, &text, NULL))
		for (line = strtok_r(dl_buf_cstr(&text), "\n", &rest); line;
			line = strtok_r(NULL, "\n", &rest))
			take_line(s, line);
	dl_buf_free(&text);
	if (s->files)
		qsort(s->file, s->files, sizeof *s->file, by_path);
	s->sorted = s->files;
}

int64_t seen_since(
	struct seen *s, const char *path, const char *mark, int64_t now)
{
	const struct seen_file key = {.path = (char *)path};
	struct seen_file *f = s->sorted ? bsearch(&key, s->file, s->sorted,
						  sizeof *f, by_path)
					: NULL;

	if (!f) {
		add(s, path, mark, now);
		f = &s->file[s->files - 1];
	} else if (strcmp(f->mark, mark) != 0 || f->at > now) {
		snprintf(f->mark, sizeof f->mark, "%s", mark);
		f->at = now;
	}
	f->again = 1;
	return f->at;
}

void seen_save(struct seen *s)
{
	struct dl_buf text = DL_BUF_INIT;

	for (size_t i = 0; i < s->files; i++)
		if (s->file[i].again)
			dl_buf_printf(&text, "%" PRId64 "\t%s\t%s\n",
				s->file[i].at, s->file[i].mark,
				s->file[i].path);
	dl_write_file(s->path, text.data, text.len, NULL);
	dl_buf_free(&text);
}

void seen_release(struct seen *s)
{
	for (size_t i = 0; i < s->files; i++)
		free(s->file[i].path);
	free(s->file);
	free(s->path);
	*s = (struct seen){0};
}
