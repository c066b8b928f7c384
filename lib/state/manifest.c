#include "state/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "state/fields.h"

enum { FORMAT = 1 };

struct dl_entry *dl_manifest_add(struct dl_manifest *m, const char *name)
{
	struct dl_entry *entry;

	/* Room doubles at powers of two. */
	if (!(m->entries & (m->entries - 1)))
		m->entry = dl_resize(m->entry, m->entries ? 2 * m->entries : 1,
			sizeof *m->entry);
	entry = &m->entry[m->entries++];
	*entry = (struct dl_entry){.bytes = 0};
	strncpy(entry->name, name, sizeof entry->name - 1);
	return entry;
}

static void put_entry(struct dl_buf *out, const struct dl_entry *entry)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "name");
	dl_put_string(out, entry->name);
	dl_put_key(out, "bytes");
	dl_put_u64(out, entry->bytes);
	dl_put_key(out, "blake2b");
	dl_put_string(out, entry->hash);
	dl_buf_byte(out, '}');
}

void dl_manifest_write(struct dl_buf *out, const struct dl_manifest *m)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "format");
	dl_put_u64(out, FORMAT);
	dl_put_key(out, "run");
	dl_put_string(out, m->run);
	dl_put_key(out, "epoch");
	dl_put_u64(out, m->epoch);
	dl_put_key(out, "clock");
	dl_put_u64(out, m->clock);
	dl_put_key(out, "made");
	dl_put_u64(out, (uint64_t)m->made);
	dl_put_key(out, "entries");
	dl_buf_byte(out, '[');
	for (size_t i = 0; i < m->entries; i++) {
		dl_buf_str(out, i ? ",\n" : "\n");
		put_entry(out, &m->entry[i]);
	}
	dl_buf_str(out, "]}\n");
}

/* Of a newer format nothing else is known. */
static int take_format(struct dl_json *j)
{
	uint64_t format = 0;

	if (dl_take(j, DL_JSON_OBJECT) || dl_take_key(j, "format") ||
		dl_take_u64(j, &format))
		return DL_DATA;
	if (format > FORMAT)
		return dl_fail(j->err, DL_DATA,
			"format %llu: made by a newer dl-tools",
			(unsigned long long)format);
	return format == FORMAT ? 0 : dl_refuse(j, "there is no such format");
}

static int take_made(struct dl_json *j, int64_t *made)
{
	uint64_t v;

	if (dl_take_key(j, "made") || dl_take_u64(j, &v))
		return DL_DATA;
	*made = (int64_t)v;
	return v > INT64_MAX ? dl_refuse(j, "too late a time") : 0;
}

static int take_entry(struct dl_json *j, struct dl_manifest *m)
{
	struct dl_entry *entry;
	char name[DL_ENTRY_NAME];

	if (dl_take_key(j, "name") || dl_take_string(j, name, sizeof name))
		return DL_DATA;
	entry = dl_manifest_add(m, name);
	return dl_take_key(j, "bytes") || dl_take_u64(j, &entry->bytes) ||
			       dl_take_key(j, "blake2b") ||
			       dl_take_hash(j, entry->hash) ||
			       dl_take(j, DL_JSON_OBJECT_END)
		       ? DL_DATA
		       : 0;
}

static int take_manifest(struct dl_json *j, struct dl_manifest *m)
{
	int more;

	if (take_format(j) || dl_take_key(j, "run") ||
		dl_take_name(j, m->run) || dl_take_key(j, "epoch") ||
		dl_take_u64(j, &m->epoch) || dl_take_key(j, "clock") ||
		dl_take_u64(j, &m->clock) || take_made(j, &m->made) ||
		dl_take_key(j, "entries") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	while ((more = dl_take_item(j, DL_JSON_OBJECT)) > 0)
		if (take_entry(j, m))
			return DL_DATA;
	return more || dl_take(j, DL_JSON_OBJECT_END) || dl_take(j, DL_JSON_END)
		       ? DL_DATA
		       : 0;
}

int dl_manifest_parse(
	struct dl_manifest *m, const void *text, size_t n, struct dl_err *e)
{
	struct dl_json j;
	int rc;

	*m = (struct dl_manifest){.entries = 0};
	dl_json_init(&j, text, n, e);
	rc = take_manifest(&j, m);
	dl_json_release(&j);
	return rc;
}

void dl_manifest_release(struct dl_manifest *m)
{
	free(m->entry);
	*m = (struct dl_manifest){.entries = 0};
}
