#include "link/authorized.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "base/sort.h"
#include "link/authorized_line.h"

static int add_line(struct dl_authorized_list *l, size_t *cap, char *line,
	size_t number, struct dl_err *e)
{
	struct dl_authorized a;
	int code = dl_authorized_line(&a, line, e);

	if (code || !*a.name)
		return code;
	a.line = number;
	if (l->entries == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		l->entry = dl_resize(l->entry, *cap, sizeof *l->entry);
	}
	l->entry[l->entries++] = a;
	return 0;
}

/* The first n bytes of text as a string of their own, if they are a line. */
static int take_line(char out[DL_AUTHORIZED_LINE + 1], const char *text,
	size_t n, struct dl_err *e)
{
	if (n > DL_AUTHORIZED_LINE)
		return dl_fail(
			e, DL_DATA, "longer than %d bytes", DL_AUTHORIZED_LINE);
	if (n && text[n - 1] == '\r')
		return dl_fail(e, DL_DATA, "ends in CR LF, not in LF alone");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return dl_fail(
				e, DL_DATA, "control character 0x%02x", c);
	}
	memcpy(out, text, n);
	out[n] = '\0';
	return 0;
}

static int by_key(const void *a, const void *b)
{
	const struct dl_authorized *x = a, *y = b;

	return memcmp(x->key, y->key, sizeof x->key);
}

static int by_name(const void *ctx, uint32_t a, uint32_t b)
{
	const struct dl_authorized *entry = ctx;

	return strcmp(entry[a].name, entry[b].name);
}

/* The entry of the first n bytes of name; order is by name. */
static const struct dl_authorized *find_name(const struct dl_authorized_list *l,
	const uint32_t *order, const char *name, size_t n)
{
	size_t low = 0, high = l->entries;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct dl_authorized *a = &l->entry[order[middle]];
		int way = strncmp(name, a->name, n);

		if (!way && !a->name[n])
			return a;
		if (way > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* Tells of the later of two lines. */
static int clash(const char *what, const struct dl_authorized *a,
	const struct dl_authorized *b, const char *place, struct dl_err *e)
{
	const struct dl_authorized *late = a->line > b->line ? a : b;

	return dl_fail(e, DL_DATA, "%s:%zu: %s as in line %zu", place,
		late->line, what, a->line + b->line - late->line);
}

static int check_name(const struct dl_authorized_list *l, const uint32_t *order,
	size_t i, const char *place, struct dl_err *e)
{
	const struct dl_authorized *a = &l->entry[order[i]], *group;
	const char *dot = strrchr(a->name, '.');
	uint32_t slot;

	if (i && !by_name(l->entry, order[i - 1], order[i]))
		return clash(
			"the same name", &l->entry[order[i - 1]], a, place, e);
	group = dot ? find_name(l, order, a->name, (size_t)(dot - a->name))
		    : NULL;
	if (group &&
		dl_authorized_claim(group, a->name, &slot) == DL_CLAIM_MEMBER)
		return clash("a name of the group", group, a, place, e);
	return 0;
}

static int check_names(
	const struct dl_authorized_list *l, const char *place, struct dl_err *e)
{
	uint32_t *order = dl_sorted(l->entries, by_name, l->entry);
	int code = 0;

	for (size_t i = 0; i < l->entries && !code; i++)
		code = check_name(l, order, i, place, e);
	free(order);
	return code;
}

static int check_keys(
	const struct dl_authorized_list *l, const char *place, struct dl_err *e)
{
	for (size_t i = 1; i < l->entries; i++)
		if (!by_key(&l->entry[i - 1], &l->entry[i]))
			return clash("the same key", &l->entry[i - 1],
				&l->entry[i], place, e);
	return 0;
}

static int parse_lines(struct dl_authorized_list *l, const char *text, size_t n,
	const char *place, struct dl_err *e)
{
	char line[DL_AUTHORIZED_LINE + 1];
	size_t cap = 0, number = 0, at = 0;

	while (at < n) {
		const char *end = memchr(text + at, '\n', n - at);
		size_t size = end ? (size_t)(end - text) - at : n - at;
		int code = take_line(line, text + at, size, e);

		number++;
		if (!code)
			code = add_line(l, &cap, line, number, e);
		if (code)
			return dl_at(e, "%s:%zu", place, number);
		at += size + 1;
	}
	return 0;
}

int dl_authorized_parse(struct dl_authorized_list *l, const char *text,
	size_t n, const char *place, struct dl_err *e)
{
	int code;

	*l = (struct dl_authorized_list)DL_AUTHORIZED_INIT;
	code = parse_lines(l, text, n, place, e);
	if (!code && l->entries) {
		qsort(l->entry, l->entries, sizeof *l->entry, by_key);
		code = check_keys(l, place, e);
		if (!code)
			code = check_names(l, place, e);
	}
	if (code)
		dl_authorized_release(l);
	return code;
}

/* Who can write it decides who may take part. */
static int check_owner(int fd, struct dl_err *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return dl_fail_sys(e, DL_IOERR, "cannot look at it");
	if (!S_ISREG(st.st_mode))
		return dl_fail(e, DL_NOINPUT, "not a file");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return dl_fail(e, DL_NOPERM, "mode %04o lets others write it",
			(unsigned)st.st_mode & 07777);
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return dl_fail(e, DL_NOPERM,
			"its owner is neither this user nor root");
	return 0;
}

static int read_open(int fd, char **text, size_t *n, struct dl_err *e)
{
	ssize_t got;
	int code = check_owner(fd, e);

	if (code)
		return code;
	*text = dl_alloc(DL_AUTHORIZED_FILE + 1);
	got = dl_read_full(fd, *text, DL_AUTHORIZED_FILE + 1);
	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "cannot read it");
	if (got > DL_AUTHORIZED_FILE)
		return dl_fail(
			e, DL_DATA, "larger than %d bytes", DL_AUTHORIZED_FILE);
	*n = (size_t)got;
	return 0;
}

int dl_authorized_read(
	struct dl_authorized_list *l, const char *path, struct dl_err *e)
{
	/* A pipe in its place is refused, not waited for. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
	char *text = NULL;
	size_t n = 0;

	*l = (struct dl_authorized_list)DL_AUTHORIZED_INIT;
	if (fd < 0)
		return dl_fail_sys(e,
			errno == ENOENT || errno == ENOTDIR ? DL_NOINPUT
							    : DL_IOERR,
			"%s", path);
	code = read_open(fd, &text, &n, e);
	close(fd);
	if (code)
		dl_at(e, "%s", path);
	else
		code = dl_authorized_parse(l, text, n, path, e);
	free(text);
	return code;
}

void dl_authorized_release(struct dl_authorized_list *l)
{
	for (size_t i = 0; i < l->entries; i++)
		free(l->entry[i].range);
	free(l->entry);
	*l = (struct dl_authorized_list)DL_AUTHORIZED_INIT;
}

const struct dl_authorized *dl_authorized_find(
	const struct dl_authorized_list *l, const unsigned char key[DL_KEY])
{
	struct dl_authorized wanted;

	if (!l->entries)
		return NULL;
	memcpy(wanted.key, key, sizeof wanted.key);
	return bsearch(&wanted, l->entry, l->entries, sizeof *l->entry, by_key);
}

int dl_authorized_same(
	const struct dl_authorized *a, const struct dl_authorized *b)
{
	if (!a || !b)
		return a == b;
	return !memcmp(a->key, b->key, sizeof a->key) &&
	       !strcmp(a->name, b->name) && a->max == b->max &&
	       a->rate == b->rate && a->expires == b->expires &&
	       a->observer == b->observer && a->end == b->end &&
	       a->ranges == b->ranges &&
	       (!a->ranges || !memcmp(a->range, b->range,
				      a->ranges * sizeof *a->range));
}

int dl_authorized_may_push(const struct dl_authorized *a, uint32_t fragment)
{
	size_t i = 0;

	if (a->observer)
		return 0;
	while (i < a->ranges && fragment > a->range[i].last)
		i++;
	return !a->ranges || (i < a->ranges && fragment >= a->range[i].first);
}

enum dl_claim dl_authorized_claim(
	const struct dl_authorized *a, const char *name, uint32_t *slot)
{
	size_t n = strlen(a->name);
	const char *number = name + n + 1;
	uint64_t v;

	if (strncmp(name, a->name, n) != 0)
		return DL_CLAIM_NOT;
	if (!name[n])
		return a->max ? DL_CLAIM_ANY : DL_CLAIM_NAME;
	if (!a->max || name[n] != '.' || (*number == '0' && number[1]) ||
		dl_parse_u64(number, 0, a->max - 1, &v))
		return DL_CLAIM_NOT;
	*slot = (uint32_t)v;
	return DL_CLAIM_MEMBER;
}

char *dl_authorized_member(
	char out[DL_NAME_MAX + 1], const struct dl_authorized *a, uint32_t slot)
{
	char number[12];

	snprintf(number, sizeof number, ".%u", slot);
	/* The line was checked for room. */
	strcpy(out, a->name);
	strncat(out, number, DL_NAME_MAX - strlen(out));
	return out;
}
