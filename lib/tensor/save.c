#include "tensor/save.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/sort.h"
#include "tensor/shards.h"

/* A set in the making. */
struct set {
	const struct dl_save *save;
	const struct dl_writer *all;
	const uint64_t *size; /* by handle */
	dl_emit_fn *fill;
	void *ctx;
	uint32_t *order; /* handles in byte order of names */
	size_t *first;	 /* shard i is order[first[i]] to order[first[i + 1]] */
	size_t shards;
	struct dl_output *output; /* the shards and the index */
};

static int compare(const void *ctx, uint32_t a, uint32_t b)
{
	struct dl_string x = dl_writer_name(ctx, a);
	struct dl_string y = dl_writer_name(ctx, b);

	return dl_string_compare(&x, &y);
}

/* Cuts the tensors into shards. */
static void cut(struct set *s)
{
	size_t n = s->all->tensors;
	uint64_t held = 0, most = s->save->shard_size;

	s->order = dl_sorted(n, compare, s->all);
	s->first = dl_alloc_array(n + 2, sizeof *s->first);
	s->shards = 1;
	for (size_t i = 0; i < n; i++) {
		uint64_t size = s->size[s->order[i]];

		if (i > s->first[s->shards - 1] &&
			(held > most || size > most - held)) {
			s->first[s->shards++] = i;
			held = 0;
		}
		held += size;
	}
	s->first[s->shards] = n;
}

static char *shard_name(const struct set *s, size_t shard)
{
	return s->shards == 1 ? dl_strdup(DL_SHARDS_SINGLE)
			      : dl_sprintf("model-%05zu-of-%05zu.safetensors",
					shard + 1, s->shards);
}

static int open_in(
	const struct set *s, size_t i, const char *name, struct dl_err *e)
{
	char *path = dl_sprintf("%s/%s", s->save->path, name);
	int code = dl_output_open(&s->output[i], path, e);

	free(path);
	return code;
}

/* A shard is a record of some of the handles. */
struct shard {
	const struct set *set;
	const uint32_t *handle;
};

static int fill(void *ctx, size_t i, uint64_t at, void *block, size_t n,
	struct dl_err *e)
{
	const struct shard *s = ctx;

	return s->set->fill(s->set->ctx, s->handle[i], at, block, n, e);
}

static int write_shard(const struct set *s, size_t i, struct dl_err *e)
{
	struct shard shard = {s, s->order + s->first[i]};
	size_t n = s->first[i + 1] - s->first[i];
	uint64_t *size = dl_alloc_array(n, sizeof *size);
	struct dl_writer w = DL_WRITER_INIT;
	char *name = shard_name(s, i);
	int code = open_in(s, i, name, e);

	dl_writer_copy_metas(&w, s->all);
	for (size_t k = 0; k < n; k++) {
		dl_writer_copy_tensor(&w, s->all, shard.handle[k]);
		size[k] = s->size[shard.handle[k]];
	}
	if (!code)
		code = dl_emit(&s->output[i], &w, size, fill, &shard, e);
	if (!code)
		code = dl_output_finish(&s->output[i], e);
	dl_writer_release(&w);
	free(size);
	free(name);
	return code;
}

static void put_index(const struct set *s, struct dl_buf *out)
{
	uint64_t total = 0;

	for (size_t i = 0; i < s->all->tensors; i++)
		total += s->size[i];
	dl_buf_printf(out,
		"{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n"
		"  \"weight_map\": {",
		(unsigned long long)total);
	for (size_t i = 0; i < s->shards; i++) {
		char *shard = shard_name(s, i);

		for (size_t k = s->first[i]; k < s->first[i + 1]; k++) {
			struct dl_string name =
				dl_writer_name(s->all, s->order[k]);

			dl_buf_str(out, k ? ",\n    " : "\n    ");
			dl_json_quote(out, name.s, name.n);
			dl_buf_printf(out, ": \"%s\"", shard);
		}
		free(shard);
	}
	dl_buf_str(out, "\n  }\n}\n");
}

static int write_index(const struct set *s, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int code = open_in(s, s->shards, DL_SHARDS_INDEX, e);

	put_index(s, &text);
	if (!code)
		code = dl_output_write(
			&s->output[s->shards], text.data, text.len, e);
	dl_buf_free(&text);
	return code;
}

static int write_set(const struct set *s, struct dl_err *e)
{
	size_t outputs = s->shards + (s->shards > 1);
	int code = 0;

	for (size_t i = 0; !code && i < s->shards; i++)
		code = write_shard(s, i, e);
	if (!code && s->shards > 1)
		code = write_index(s, e);
	if (!code)
		return dl_output_commit_all(s->output, outputs, e);
	for (size_t i = 0; i < outputs; i++)
		dl_output_abort(&s->output[i]);
	return code;
}

static int holds(const char *folder, const char *name)
{
	char *path = dl_sprintf("%s/%s", folder, name);
	struct stat st;
	int found = !lstat(path, &st);

	free(path);
	return found;
}

static int open_folder(
	struct dl_output_folder *f, const struct dl_save *s, struct dl_err *e)
{
	int code = dl_output_folder_open(f, s->path, e);

	if (code || !(holds(s->path, DL_SHARDS_SINGLE) ||
			    holds(s->path, DL_SHARDS_INDEX)))
		return code;
	dl_output_folder_close(f);
	return dl_fail(e, DL_CANTCREAT, "%s: holds a model already", s->path);
}

int dl_save_check(const struct dl_save *s, struct dl_err *e)
{
	struct dl_output_folder folder;
	int code;

	if (!s->shard_size)
		return dl_output_check(s->path, e);
	code = open_folder(&folder, s, e);
	if (!code)
		dl_output_folder_close(&folder);
	return code;
}

static int save_set(struct set *s, struct dl_err *e)
{
	struct dl_output_folder folder;
	int code = open_folder(&folder, s->save, e);

	if (code)
		return code;
	cut(s);
	s->output = dl_alloc_array(s->shards + 1, sizeof *s->output);
	for (size_t i = 0; i <= s->shards; i++)
		s->output[i] = (struct dl_output)DL_OUTPUT_INIT;
	code = write_set(s, e);
	dl_output_folder_close(&folder);
	free(s->order);
	free(s->first);
	free(s->output);
	return code;
}

static int save_file(const struct set *s, struct dl_writer *w, struct dl_err *e)
{
	struct dl_output o;
	int code = dl_output_open(&o, s->save->path, e);

	dl_output_compress(&o, s->save->zstd);
	if (!code)
		code = dl_emit(&o, w, s->size, s->fill, s->ctx, e);
	if (!code)
		code = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return code;
}

int dl_save(const struct dl_save *s, struct dl_writer *w, const uint64_t *size,
	dl_emit_fn *f, void *ctx, struct dl_err *e)
{
	struct set set = {
		.save = s, .all = w, .size = size, .fill = f, .ctx = ctx};
	int code = s->shard_size ? save_set(&set, e) : save_file(&set, w, e);

	dl_writer_release(w);
	return code;
}
