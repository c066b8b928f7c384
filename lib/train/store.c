#include "train/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "tensor/model.h"
#include "tensor/records.h"
#include "train/tensors.h"

static const char first_prefix[] = "exp_avg.";
static const char second_prefix[] = "exp_avg_sq.";

static int check_shape(const struct dl_llama_param *p, const char *name,
	const struct dl_tensor *t, struct dl_err *e)
{
	if (!t)
		return dl_fail(e, DL_DATA, "%s is missing", name);
	for (unsigned i = 0; i < p->rank; i++)
		if (t->rank != p->rank || t->shape[i] != p->shape[i])
			return dl_fail(e, DL_DATA,
				"%s has not the shape that the "
				"configuration asks for",
				name);
	return 0;
}

int dl_store_read_model(const struct dl_llama *m, const char *path,
	float *values, struct dl_err *e)
{
	struct dl_model file;
	int rc = dl_model_open(&file, path, e);

	if (rc)
		return rc;
	for (int copy = 0; copy < 2 && !rc; copy++)
		for (size_t i = 0; i < m->n_params && !rc; i++) {
			const struct dl_llama_param *p = &m->params[i];
			const struct dl_model_tensor *t =
				dl_model_find(&file, p->name, strlen(p->name));

			if (copy)
				rc = dl_model_read_f32(
					&file, t, values + p->at, e);
			else if ((rc = check_shape(
					  p, p->name, t ? &t->info : NULL, e)))
				dl_at(e, "%s", path);
		}
	dl_model_close(&file);
	return rc;
}

static int write_record(
	struct dl_tensors *r, const char *path, struct dl_err *e)
{
	struct dl_output o = DL_OUTPUT_INIT;
	int rc = dl_output_open(&o, path, e);

	if (!rc)
		rc = dl_tensors_write(r, o.fd, path, e);
	if (!rc)
		rc = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

static int ends_in(const char *s, const char *end)
{
	size_t n = strlen(s), k = strlen(end);

	return n >= k && !strcmp(s + n - k, end);
}

/* On the disk, without its name yet. */
static int write_config(const struct dl_config *c, const char *folder,
	struct dl_output *o, struct dl_err *e)
{
	struct dl_buf json = DL_BUF_INIT;
	char *path = dl_sprintf("%s/config.json", folder);
	int rc = dl_output_open(o, path, e);

	dl_config_write(c, &json);
	if (!rc)
		rc = dl_output_write(o, json.data, json.len, e);
	if (!rc)
		rc = dl_output_finish(o, e);
	dl_buf_free(&json);
	free(path);
	return rc;
}

/* The model's file is named when its config.json has its name. */
static int write_folder(const struct dl_llama *m, struct dl_tensors *r,
	const char *folder, const char *file, struct dl_err *e)
{
	struct dl_output o[2] = {DL_OUTPUT_INIT, DL_OUTPUT_INIT};
	struct dl_output_folder made;
	int rc = dl_output_folder_open(&made, folder, e);

	if (rc)
		return rc;
	rc = write_config(&m->config, folder, &o[0], e);
	if (!rc)
		rc = dl_output_open(&o[1], file, e);
	if (!rc)
		rc = dl_tensors_write(r, o[1].fd, file, e);
	if (!rc)
		rc = dl_output_commit_all(o, 2, e);
	dl_output_abort(&o[0]);
	dl_output_abort(&o[1]);
	dl_output_folder_close(&made);
	return rc;
}

/* The file that holds the model's values; path is its folder, or itself. */
static char *model_file(const char *path, int *folder)
{
	*folder = strcmp(path, "-") && !ends_in(path, ".safetensors");
	return *folder ? dl_sprintf("%s/model.safetensors", path)
		       : dl_strdup(path);
}

int dl_store_refuse_model(const char *path, struct dl_err *e)
{
	int folder;
	char *file = model_file(path, &folder);
	struct stat st;
	int rc = 0;

	if (!lstat(file, &st))
		rc = dl_fail(e, DL_CANTCREAT,
			"%s: is there already; -f replaces it", file);
	free(file);
	return rc;
}

int dl_store_check_model(const char *path, struct dl_err *e)
{
	int folder;
	char *file = model_file(path, &folder);
	struct dl_output_folder made = {NULL};
	int rc = folder ? dl_output_folder_open(&made, path, e) : 0;

	if (!rc)
		rc = dl_output_check(file, e);
	dl_output_folder_close(&made);
	free(file);
	return rc;
}

int dl_store_write_model(const struct dl_llama *m, const char *path,
	const float *values, struct dl_err *e)
{
	struct dl_tensors r = DL_TENSORS_INIT;
	int folder;
	char *file = model_file(path, &folder);
	int rc;

	/* The word that Hugging Face's reader looks for. */
	dl_writer_meta(&r.writer, "format", "pt");
	for (size_t i = 0; i < m->n_params; i++)
		dl_tensors_add(&r, "", &m->params[i], values);
	rc = folder ? write_folder(m, &r, path, file, e)
		    : write_record(&r, file, e);
	dl_tensors_release(&r);
	free(file);
	return rc;
}

/* The counters of a state: its metadata. */
struct counters {
	uint64_t clock, tokens, updates, since;
};

void dl_store_add_state(struct dl_tensors *r, const struct dl_training *t)
{
	dl_writer_meta(&r->writer, "dl.format", "1");
	dl_writer_meta(&r->writer, "dl.kind", "state");
	dl_writer_meta_u64(&r->writer, "dl.step", t->clock);
	dl_writer_meta_u64(&r->writer, "dl.tokens", t->tokens);
	dl_writer_meta_u64(&r->writer, "dl.updates", t->adamw.updates);
	dl_writer_meta_u64(&r->writer, "dl.since", t->adamw.since);
	for (size_t i = 0; i < t->m->n_params; i++) {
		const struct dl_llama_param *p = &t->m->params[i];

		dl_tensors_add(r, "", p, t->values);
		dl_tensors_add(r, first_prefix, p, t->adamw.first);
		dl_tensors_add(r, second_prefix, p, t->adamw.second);
	}
}

int dl_store_save(
	const struct dl_training *t, const char *path, struct dl_err *e)
{
	struct dl_tensors r = DL_TENSORS_INIT;
	int rc;

	dl_store_add_state(&r, t);
	rc = write_record(&r, path, e);
	dl_tensors_release(&r);
	return rc;
}

int dl_store_save_scratch(
	const struct dl_training *t, const char *path, struct dl_err *e)
{
	struct dl_tensors r = DL_TENSORS_INIT;
	int rc;

	dl_store_add_state(&r, t);
	rc = dl_tensors_scratch(&r, path, e);
	dl_tensors_release(&r);
	return rc;
}

/* Checks (values NULL) or reads the m->size numbers under prefix. */
static int read_array(const struct dl_llama *m, const struct dl_records *r,
	const char *prefix, float *values, struct dl_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < m->n_params && !rc; i++) {
		const struct dl_llama_param *p = &m->params[i];
		char *name = dl_sprintf("%s%s", prefix, p->name);
		const struct dl_tensor *t =
			dl_header_find(&r->record->header, name, strlen(name));

		if (values)
			rc = dl_records_read(r, r->record->at + t->offset,
				values + p->at, p->count * sizeof(float), e);
		else
			rc = check_shape(p, name, t, e);
		if (!rc && t->dtype != DL_F32)
			rc = dl_fail(e, DL_DATA, "%s is not F32", name);
		free(name);
	}
	return rc;
}

static int read_state(
	struct dl_training *t, const struct dl_records *r, struct dl_err *e)
{
	const struct dl_header *h = &r->record->header;
	struct counters n;
	int rc;

	if (r->records != 1)
		return dl_fail(e, DL_DATA, "not one record");
	if ((rc = dl_header_meta_u64(h, "dl.step", &n.clock, e)) ||
		(rc = dl_header_meta_u64(h, "dl.tokens", &n.tokens, e)) ||
		(rc = dl_header_meta_u64(h, "dl.updates", &n.updates, e)) ||
		(rc = dl_header_meta_u64(h, "dl.since", &n.since, e)) ||
		(rc = read_array(t->m, r, "", NULL, e)) ||
		(rc = read_array(t->m, r, first_prefix, NULL, e)) ||
		(rc = read_array(t->m, r, second_prefix, NULL, e)) ||
		(rc = read_array(t->m, r, "", t->values, e)) ||
		(rc = read_array(t->m, r, first_prefix, t->adamw.first, e)) ||
		(rc = read_array(t->m, r, second_prefix, t->adamw.second, e)))
		return rc;
	t->clock = n.clock;
	t->tokens = n.tokens;
	t->adamw.updates = n.updates;
	t->adamw.since = n.since;
	return 0;
}

int dl_store_restore(struct dl_training *t, const char *path, struct dl_err *e)
{
	struct dl_records r = DL_RECORDS_INIT;
	int rc = dl_records_open(&r, path, e);

	if (!rc && (rc = read_state(t, &r, e)))
		dl_at(e, "%s", path);
	dl_records_close(&r);
	return rc;
}

int dl_store_read_config(struct dl_config *c, const char *config,
	const char *model, struct dl_err *e)
{
	const char *slash = strrchr(model, '/');
	struct stat st;
	char *path;
	int rc;

	if (config)
		return dl_config_read(c, config, e);
	if (!strcmp(model, "-"))
		return dl_fail(e, DL_USAGE,
			"a model from standard input needs --config");
	if (stat(model, &st))
		return dl_fail_sys(e, DL_NOINPUT, "%s", model);
	if (S_ISDIR(st.st_mode))
		path = dl_sprintf("%s/config.json", model);
	else
		path = dl_sprintf("%.*sconfig.json",
			slash ? (int)(slash - model) + 1 : 0, model);
	rc = dl_config_read(c, path, e);
	free(path);
	return rc == DL_NOINPUT ? dl_fail(e, rc,
					  "%s: no config.json with it; "
					  "--config names another",
					  model)
				: rc;
}
