#include "tensor/shards.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

enum { INDEX_LIMIT = 100000000 };

/* The text was reserved at the size of the input, and no string is longer than
 * its spelling with quotes, so what was kept never moves. */
static struct dl_string keep(struct dl_shards *s, const struct dl_json *j)
{
	const char *at = (const char *)s->text.data + s->text.len;

	dl_buf_add(&s->text, j->text, j->len);
	dl_buf_byte(&s->text, 0);
	return (struct dl_string){at, j->len};
}

/* A shard lies beside its index: a plain file name. */
static int plain(const struct dl_json *j)
{
	return j->len && !memchr(j->text, '/', j->len) &&
	       !memchr(j->text, 0, j->len) && !dl_json_is(j, ".") &&
	       !dl_json_is(j, "..");
}

static int read_map(struct dl_shards *s, struct dl_json *j, struct dl_err *e)
{
	enum dl_json_token t = dl_json_next(j);
	size_t room = 0;

	if (t != DL_JSON_OBJECT)
		return t == DL_JSON_BAD
			       ? e->code
			       : dl_fail(e, DL_DATA,
					 "weight_map is not an object");
	while ((t = dl_json_next(j)) == DL_JSON_KEY) {
		struct dl_shards_entry *entry;

		if (s->entries == room) {
			room = room ? 2 * room : 64;
			s->entry = dl_resize(s->entry, room, sizeof *s->entry);
		}
		entry = &s->entry[s->entries];
		entry->tensor = keep(s, j);
		t = dl_json_next(j);
		if (t != DL_JSON_STRING || !plain(j))
			return t == DL_JSON_BAD ? e->code
						: dl_fail(e, DL_DATA,
							  "a shard is not a "
							  "plain file name");
		entry->shard = keep(s, j);
		s->entries++;
	}
	return t == DL_JSON_BAD ? e->code : 0;
}

static int read_json(struct dl_shards *s, struct dl_json *j, struct dl_err *e)
{
	enum dl_json_token t = dl_json_next(j);
	int maps = 0, rc;

	if (t != DL_JSON_OBJECT)
		return t == DL_JSON_BAD ? e->code
					: dl_fail(e, DL_DATA, "not an object");
	while ((t = dl_json_next(j)) == DL_JSON_KEY) {
		if (dl_json_is(j, "weight_map")) {
			if (maps++)
				return dl_fail(
					e, DL_DATA, "weight_map comes twice");
			rc = read_map(s, j, e);
		} else {
			rc = dl_json_skip(j, dl_json_next(j));
		}
		if (rc)
			return rc;
	}
	if (t == DL_JSON_BAD || dl_json_next(j) != DL_JSON_END)
		return e->code;
	if (!s->entries)
		return dl_fail(e, DL_DATA, "names no tensor in a weight_map");
	return 0;
}

static int by_tensor(const void *a, const void *b)
{
	const struct dl_shards_entry *x = a, *y = b;

	return dl_string_compare(&x->tensor, &y->tensor);
}

static int by_shard(const void *a, const void *b)
{
	const struct dl_shards_entry *x = a, *y = b;
	int order = dl_string_compare(&x->shard, &y->shard);

	return order ? order : by_tensor(a, b);
}

static int sort(struct dl_shards *s, struct dl_err *e)
{
	char name[80];

	qsort(s->entry, s->entries, sizeof *s->entry, by_tensor);
	for (size_t i = 1; i < s->entries; i++) {
		const struct dl_string *t = &s->entry[i].tensor;

		if (!by_tensor(&s->entry[i - 1], &s->entry[i]))
			return dl_fail(e, DL_DATA, "tensor \"%s\" comes twice",
				dl_scrub(name, sizeof name, t->s, t->n));
	}
	qsort(s->entry, s->entries, sizeof *s->entry, by_shard);
	s->file = dl_alloc_array(s->entries, sizeof *s->file);
	for (size_t i = 0; i < s->entries; i++) {
		struct dl_shards_entry *entry = &s->entry[i];

		if (!i || dl_string_compare(&entry[-1].shard, &entry->shard))
			s->file[s->files++] = entry->shard;
		entry->file = (unsigned)(s->files - 1);
	}
	return 0;
}

int dl_shards_parse(
	struct dl_shards *s, const void *text, size_t n, struct dl_err *e)
{
	struct dl_err local;
	struct dl_json j;
	int rc;

	memset(s, 0, sizeof *s);
	dl_buf_reserve(&s->text, n);
	dl_json_init(&j, text, n, &local);
	rc = read_json(s, &j, &local);
	if (!rc)
		rc = sort(s, &local);
	dl_json_release(&j);
	if (rc && e)
		*e = local;
	return rc;
}

int dl_shards_read(struct dl_shards *s, const char *path, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int rc;

	memset(s, 0, sizeof *s);
	rc = dl_read_file(path, INDEX_LIMIT, &text, e);
	if (!rc) {
		rc = dl_shards_parse(s, text.data, text.len, e);
		if (rc)
			dl_at(e, "%s", path);
	}
	dl_buf_free(&text);
	return rc;
}

void dl_shards_release(struct dl_shards *s)
{
	free(s->entry);
	free(s->file);
	dl_buf_free(&s->text);
	memset(s, 0, sizeof *s);
}
