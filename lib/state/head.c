#include "state/head.h"

#include <stdlib.h>

#include "state/fields.h"
#include "state/saved.h"

static const char format[] = "dl-store 1";

const char *const dl_store_kinds[] = {"global", "momentum", "error"};

int dl_head_kinds(const struct dl_head_files *f)
{
	return f->error ? DL_STORE_KINDS : DL_STORE_ERROR;
}

static void put_hash(struct dl_buf *out, const char *hash)
{
	if (*hash)
		dl_put_string(out, hash);
	else
		dl_buf_str(out, "null");
}

static void put_files(struct dl_buf *out, const struct dl_head_files *f)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "made");
	dl_put_version(out, f->made);
	for (int kind = 0; kind < dl_head_kinds(f); kind++) {
		dl_put_key(out, dl_store_kinds[kind]);
		put_hash(out, f->hash[kind]);
	}
	dl_buf_byte(out, '}');
}

void dl_head_write(struct dl_buf *out, const struct dl_head *h)
{
	dl_buf_byte(out, '{');
	dl_put_key(out, "format");
	dl_put_string(out, format);
	dl_put_key(out, "run");
	dl_put_string(out, h->run.name);
	dl_put_key(out, "layout");
	dl_put_string(out, h->layout);
	dl_put_key(out, "h");
	dl_put_u64(out, h->run.h);
	dl_put_key(out, "saved");
	dl_saved_write(out, &h->saved, "\n");
	dl_put_key(out, "files");
	dl_buf_byte(out, '[');
	for (uint32_t p = 0; p < h->saved.fragments; p++) {
		dl_buf_str(out, p ? ",\n" : "\n");
		put_files(out, h->files + p);
	}
	dl_buf_str(out, "]}\n");
}

static int take_run(struct dl_json *j, struct dl_head *h)
{
	if (dl_take(j, DL_JSON_OBJECT) || dl_take_key(j, "format") ||
		dl_take_exactly(j, format) || dl_take_key(j, "run") ||
		dl_take_name(j, h->run.name) || dl_take_key(j, "layout") ||
		dl_take_hash(j, h->layout) || dl_take_key(j, "h") ||
		dl_take_u64(j, &h->run.h))
		return DL_DATA;
	return h->run.h ? 0 : dl_refuse(j, "h is 0");
}

static int take_file(struct dl_json *j, struct dl_head_files *f, int kind)
{
	return dl_take_key(j, dl_store_kinds[kind]) ||
	       dl_take_hash_or_null(j, f->hash[kind]);
}

static int take_files(struct dl_json *j, struct dl_head_files *f)
{
	enum dl_json_token t;

	if (dl_take(j, DL_JSON_OBJECT) || dl_take_key(j, "made") ||
		dl_take_version(j, &f->made) ||
		take_file(j, f, DL_STORE_GLOBAL) ||
		take_file(j, f, DL_STORE_MOMENTUM))
		return DL_DATA;
	t = dl_json_next(j);
	if (t == DL_JSON_OBJECT_END || t == DL_JSON_BAD)
		return t == DL_JSON_BAD ? DL_DATA : 0;
	if (t != DL_JSON_KEY || !dl_json_is(j, "error"))
		return dl_refuse(j, "expected the key 'error' or the end");
	f->error = 1;
	return dl_take_hash_or_null(j, f->hash[DL_STORE_ERROR]) ||
			       dl_take(j, DL_JSON_OBJECT_END)
		       ? DL_DATA
		       : 0;
}

static int take_head(struct dl_json *j, struct dl_head *h)
{
	if (take_run(j, h) || dl_take_key(j, "saved") ||
		dl_take(j, DL_JSON_OBJECT) || dl_saved_parse(j, &h->saved) ||
		dl_take_key(j, "files") || dl_take(j, DL_JSON_ARRAY))
		return DL_DATA;
	h->files = dl_alloc_array(h->saved.fragments, sizeof *h->files);
	for (uint32_t p = 0; p < h->saved.fragments; p++) {
		if (take_files(j, h->files + p))
			return DL_DATA;
		if (dl_version_cmp(
			    h->files[p].made, h->saved.fragment[p].version) > 0)
			return dl_refuse(j, "files newer than their fragment");
	}
	if (dl_take(j, DL_JSON_ARRAY_END) || dl_take(j, DL_JSON_OBJECT_END) ||
		dl_take(j, DL_JSON_END))
		return DL_DATA;
	return 0;
}

int dl_head_parse(
	struct dl_head *h, const void *text, size_t n, struct dl_err *e)
{
	struct dl_json j;
	int rc;

	*h = (struct dl_head){0};
	dl_json_init(&j, text, n, e);
	rc = take_head(&j, h);
	dl_json_release(&j);
	return rc;
}

void dl_head_release(struct dl_head *h)
{
	dl_sync_saved_release(&h->saved);
	free(h->files);
	*h = (struct dl_head){0};
}
