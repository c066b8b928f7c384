#include "cmd/merge/deltas.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/merge/meta.h"
#include "tensor/coded.h"

const struct dl_records_entry *delta_entry(const struct delta *d)
{
	return &d->file->record[d->record];
}

int delta_at(const struct delta *d, struct dl_err *e)
{
	return d->file->records > 1
		       ? dl_at(e, "%s: record %zu", d->file->path, d->record)
		       : dl_at(e, "%s", d->file->path);
}

/* A count that may be absent; *has counts those that are there. */
static int read_count(const struct dl_header *h, const char *key, uint64_t *n,
	int *has, struct dl_err *e)
{
	if (!dl_header_meta(h, key))
		return 0;
	++*has;
	return dl_header_meta_u64(h, key, n, e);
}

static int read_meta(
	struct delta *d, const struct dl_header *h, struct dl_err *e)
{
	const char *kind;
	int instance = 0;

	if (meta_text(h, "dl.kind", &kind, e) ||
		meta_text(h, "dl.learner", &d->name, e) ||
		read_count(h, "dl.instance", &d->instance, &instance, e) ||
		read_count(h, "dl.seq", &d->seq, &d->numbered, e) ||
		read_count(h, "dl.steps", &d->steps, &d->counted, e) ||
		read_count(h, "dl.tokens", &d->tokens, &d->counted, e))
		return e->code;
	if (strcmp(kind, "delta") && strcmp(kind, "push"))
		return dl_fail(e, DL_DATA,
			"not a delta or push: dl-frag diff makes one");
	d->counted = d->counted == 2;
	if (!*d->name)
		d->name = d->file->path;
	return 0;
}

/* As the syncer has it: older is late, newer was never issued. */
static int check_base(const struct base *b, uint32_t p,
	const struct dl_header *h, struct dl_err *e)
{
	struct dl_version base, now = b->fragment[p].version;

	if (meta_version(h, "dl.base", &base, e))
		return e->code;
	return now.epoch && base.number > now.number
		       ? dl_fail(e, DL_DATA,
				 "made on version %llu.%llu, but the base is "
				 "%llu.%llu",
				 (unsigned long long)base.epoch,
				 (unsigned long long)base.number,
				 (unsigned long long)now.epoch,
				 (unsigned long long)now.number)
		       : 0;
}

static int read_delta(struct delta *d, struct base *b, struct dl_err *e)
{
	const struct dl_header *h = &delta_entry(d)->header;
	struct dl_coded coded;
	int rc;

	if (base_agree(b, h, e) || read_meta(d, h, e) ||
		base_find(b, h, &d->fragment, e) ||
		check_base(b, d->fragment, h, e))
		return e->code;
	rc = dl_coded_open(&coded, &b->layout, d->fragment, h, NULL, e);
	dl_coded_release(&coded);
	return rc;
}

/* The order in which the syncer combines them. */
static int compare(const void *a, const void *b)
{
	const struct delta *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	if (x->fragment != y->fragment)
		return x->fragment < y->fragment ? -1 : 1;
	if (c)
		return c;
	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

/* Pushes of one learner are added up; the same twice, or what does not say
 * which it is, would count twice. */
static int check_twice(const struct deltas *d, struct dl_err *e)
{
	char name[80];

	for (size_t i = 1; i < d->n; i++) {
		const struct delta *x = &d->delta[i - 1], *y = &d->delta[i];

		if (x->fragment != y->fragment || strcmp(x->name, y->name) ||
			(x->numbered && y->numbered && compare(x, y)))
			continue;
		dl_fail(e, DL_DATA, "a second delta by \"%s\"%s",
			dl_scrub(name, sizeof name, y->name, strlen(y->name)),
			x->numbered && y->numbered
				? ""
				: ", not told apart by dl.seq");
		return delta_at(y, e);
	}
	return 0;
}

static int open_files(
	struct deltas *d, const struct merge_options *o, struct dl_err *e)
{
	int rc = 0;

	d->file = dl_alloc_array(o->deltas, sizeof *d->file);
	for (size_t i = 0; !rc && i < o->deltas; i++) {
		rc = dl_records_open(&d->file[d->files++], o->delta[i], e);
		d->n += d->file[i].records;
	}
	return rc;
}

int deltas_open(struct deltas *d, struct base *b, const struct merge_options *o,
	struct dl_err *e)
{
	size_t n = 0;
	int rc;

	*d = (struct deltas){0};
	rc = open_files(d, o, e);
	d->delta = dl_alloc_array(d->n, sizeof *d->delta);
	for (size_t i = 0; !rc && i < d->files; i++)
		for (size_t r = 0; !rc && r < d->file[i].records; r++) {
			struct delta *next = &d->delta[n++];

			*next = (struct delta){
				.file = &d->file[i], .record = r};
			rc = read_delta(next, b, e);
			if (rc)
				delta_at(next, e);
		}
	if (rc)
		return rc;
	qsort(d->delta, d->n, sizeof *d->delta, compare);
	return check_twice(d, e);
}

void deltas_close(struct deltas *d)
{
	for (size_t i = 0; i < d->files; i++)
		dl_records_close(&d->file[i]);
	free(d->file);
	free(d->delta);
}

size_t deltas_of(const struct deltas *d, uint32_t p, const struct delta **first)
{
	size_t low = 0, n = d->n, end;

	while (n) {
		size_t half = n / 2;

		if (d->delta[low + half].fragment < p) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	*first = d->delta + low;
	for (end = low; end < d->n && d->delta[end].fragment == p; end++)
		;
	return end - low;
}

int deltas_by(const struct deltas *d, const char *name)
{
	size_t i = 0;

	while (i < d->n && strcmp(d->delta[i].name, name))
		i++;
	return i < d->n;
}
