#include "cmd/replay/recorded.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

static int compare(const void *a, const void *b)
{
	const struct recorded_push *x = a, *y = b;
	int c = strcmp(x->learner, y->learner);

	if (c)
		return c;
	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	if (x->fragment != y->fragment)
		return x->fragment < y->fragment ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int read_header(
	struct recorded_push *p, const struct dl_header *h, struct dl_err *e)
{
	const struct dl_string *name = dl_header_meta(h, "dl.learner");

	if (!name || !dl_name_ok(name->s, name->n))
		return dl_fail(e, DL_DATA, "dl.learner is no good name");
	strcpy(p->learner, name->s);
	if (dl_header_meta_u64(h, "dl.instance", &p->instance, e) ||
		dl_header_meta_u64(h, "dl.fragment", &p->fragment, e))
		return e->code;
	return dl_header_meta_u64(h, "dl.seq", &p->seq, e);
}

static int add(struct recorded *r, const char *folder, const char *name,
	struct dl_err *e)
{
	struct recorded_push *p;
	struct dl_records file;
	int rc;

	if (!(r->n & (r->n - 1)))
		r->push = dl_resize(
			r->push, r->n ? 2 * r->n : 1, sizeof *r->push);
	p = &r->push[r->n++];
	*p = (struct recorded_push){.path = dl_sprintf("%s/%s", folder, name)};
	rc = dl_records_open(&file, p->path, e);
	if (!rc && read_header(p, &file.record->header, e))
		rc = dl_at(e, "%s", p->path);
	dl_records_close(&file);
	return rc;
}

int recorded_open(struct recorded *r, const char *folder, struct dl_err *e)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int rc = 0;

	*r = (struct recorded){0};
	if (!d)
		return dl_fail_sys(e, DL_NOINPUT, "%s", folder);
	/* One that was being written when the syncer died never counted. */
	while (!rc && (entry = readdir(d)))
		if (entry->d_name[0] != '.' && !strchr(entry->d_name, '.'))
			rc = add(r, folder, entry->d_name, e);
	closedir(d);
	if (r->n)
		qsort(r->push, r->n, sizeof *r->push, compare);
	return rc;
}

void recorded_close(struct recorded *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->push[i].path);
	free(r->push);
	*r = (struct recorded){0};
}

const struct recorded_push *recorded_find(
	const struct recorded *r, const struct dl_sync_event *ev)
{
	struct recorded_push key = {.instance = ev->instance,
		.fragment = ev->fragment,
		.seq = ev->seq};
	size_t low = 0, high = r->n;

	strcpy(key.learner, ev->learner);
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare(&r->push[mid], &key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < r->n && !compare(&r->push[low], &key) ? &r->push[low]
							   : NULL;
}

const struct recorded_push *recorded_next(
	const struct recorded *r, const struct recorded_push *push)
{
	const struct recorded_push *next = push + 1;

	return next < r->push + r->n && !compare(push, next) ? next : NULL;
}

static int check_name(
	const struct dl_records *file, const char *path, struct dl_err *e)
{
	const char *slash = strrchr(path, '/');
	unsigned char block[1 << 16];
	char hex[DL_HASH_HEX];
	struct dl_hash h;
	size_t n;

	dl_hash_init(&h);
	for (uint64_t at = 0; at < file->size; at += n) {
		n = file->size - at < sizeof block ? (size_t)(file->size - at)
						   : sizeof block;
		if (dl_records_read(file, at, block, n, e))
			return e->code;
		dl_hash_add(&h, block, n);
	}
	dl_hash_hex(&h, hex);
	return strcmp(slash + 1, hex)
		       ? dl_fail(e, DL_DATA, "%s: not the bytes of its name",
				 path)
		       : 0;
}

int recorded_read(struct dl_records *file, const char *path, struct dl_err *e)
{
	int code = dl_records_open(file, path, e);

	return code ? code : check_name(file, path, e);
}
