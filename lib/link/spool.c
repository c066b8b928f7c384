#include "link/spool.h"

#include <stdlib.h>
#include <string.h>

#include "link/spool_text.h"

#define FIELDS(table)                                                          \
	{                                                                      \
		table, sizeof table / sizeof *table                            \
	}

static const char *const states[] = {
	"running", "ending", "final", "done", NULL};
static const char *const doings[] = {"training", "drained", "leaving", NULL};
/* The words of enum dl_taken and enum dl_refusal, "-" where there is none. */
static const char *const answers[] = {
	"round", "waiting", "now", "late", "again", "refused", NULL};
static const char *const reasons[] = {"-", "finite", "empty", "base", "count",
	"clock", "rate", "norm", "end", "barred", NULL};
_Static_assert(sizeof(reasons) / sizeof(*reasons) == DL_REFUSALS + 1,
	"each refusal has its word");

#define AT(field) offsetof(struct dl_spool_latest, field)
static const struct dl_spool_field latest_key[] = {
	{"run", SPOOL_NAME, AT(run), NULL},
	{"layout", SPOOL_HASH, AT(layout), NULL},
	{"h", SPOOL_POSITIVE, AT(h), NULL},
	{"tau", SPOOL_NUMBER, AT(tau), NULL},
	{"apply", SPOOL_TOKEN, AT(apply), NULL},
	{"wait", SPOOL_FLAG, AT(wait), NULL},
	{"global", SPOOL_TOKEN, AT(global), NULL},
	{"epoch", SPOOL_POSITIVE, AT(epoch), NULL},
	{"clock", SPOOL_NUMBER, AT(clock), NULL},
	{"state", SPOOL_WORD, AT(state), states},
};
#undef AT
#define AT(field) offsetof(struct dl_spool_global, field)
static const struct dl_spool_field latest_column[] = {
	{"version", SPOOL_VERSION, AT(version), NULL},
	{"step", SPOOL_NUMBER, AT(step), NULL},
	{"hash", SPOOL_HASH, AT(hash), NULL},
	{"bytes", SPOOL_POSITIVE, AT(bytes), NULL},
	{"base", SPOOL_VERSION, AT(base), NULL},
	{"update", SPOOL_NO_HASH, AT(update), NULL},
	{"update_bytes", SPOOL_NUMBER, AT(update_bytes), NULL},
};
#undef AT
#define AT(field) offsetof(struct dl_spool_learner, field)
static const struct dl_spool_field learner_key[] = {
	{"instance", SPOOL_NUMBER, AT(instance), NULL},
	{"clock", SPOOL_NUMBER, AT(clock), NULL},
	{"steps", SPOOL_NUMBER, AT(steps), NULL},
	{"tokens", SPOOL_NUMBER, AT(tokens), NULL},
	{"loss", SPOOL_LOSS, AT(loss), NULL},
	{"state", SPOOL_WORD, AT(state), doings},
	{"layout", SPOOL_NO_HASH, AT(layout), NULL},
};
#undef AT
static const struct dl_spool_field learner_column[] = {
	{"version", SPOOL_VERSION, 0, NULL},
};
#define AT(field) offsetof(struct dl_spool_taken, field)
static const struct dl_spool_field taken_key[] = {
	{"instance", SPOOL_NUMBER, AT(instance), NULL},
	{"epoch", SPOOL_POSITIVE, AT(epoch), NULL},
	{"clock", SPOOL_NUMBER, AT(clock), NULL},
};
#undef AT
#define AT(field) offsetof(struct dl_spool_answer, field)
static const struct dl_spool_field taken_column[] = {
	{"taken", SPOOL_NUMBER, AT(taken), NULL},
	{"settled", SPOOL_NUMBER, AT(settled), NULL},
	{"word", SPOOL_WORD, AT(word), answers},
	{"reason", SPOOL_WORD, AT(reason), reasons},
};
#undef AT

static const struct dl_spool_fields latest_keys = FIELDS(latest_key);
static const struct dl_spool_fields latest_columns = FIELDS(latest_column);
static const struct dl_spool_fields learner_keys = FIELDS(learner_key);
static const struct dl_spool_fields learner_columns = FIELDS(learner_column);
static const struct dl_spool_fields taken_keys = FIELDS(taken_key);
static const struct dl_spool_fields taken_columns = FIELDS(taken_column);
static const struct dl_spool_fields open_keys = {NULL, 0};

void dl_spool_latest_write(const struct dl_spool_latest *v, struct dl_buf *out)
{
	dl_spool_put_keys(out, &latest_keys, v);
	dl_spool_put_columns(out, &latest_columns);
	for (uint32_t p = 0; p < v->fragments; p++)
		dl_spool_put_row(out, p, &latest_columns, v->fragment + p);
}

/* An update has a base, a hash and bytes, or none of them. */
static int check_updates(
	const struct dl_spool_latest *v, struct dl_spool_lines *t)
{
	for (uint32_t p = 0; p < v->fragments; p++) {
		const struct dl_spool_global *g = v->fragment + p;

		if (!g->base.epoch != !*g->update ||
			!g->update_bytes != !*g->update || !g->version.epoch)
			return dl_spool_refuse(
				t, "a fragment contradicts itself");
	}
	return 0;
}

int dl_spool_latest_parse(
	struct dl_spool_latest *v, const void *text, size_t n, struct dl_err *e)
{
	struct dl_spool_lines t;
	void *rows = NULL;
	int code;

	*v = (struct dl_spool_latest){0};
	dl_spool_lines_init(&t, text, n, e);
	code = dl_spool_take_keys(&t, &latest_keys, v);
	if (!code)
		code = dl_spool_take_rows(&t, &latest_columns,
			sizeof *v->fragment, &rows, &v->fragments);
	v->fragment = rows;
	if (!code)
		code = check_updates(v, &t);
	if (code)
		dl_spool_latest_release(v);
	return code;
}

void dl_spool_latest_release(struct dl_spool_latest *v)
{
	free(v->fragment);
	*v = (struct dl_spool_latest){0};
}

void dl_spool_learner_write(
	const struct dl_spool_learner *v, struct dl_buf *out)
{
	dl_spool_put_keys(out, &learner_keys, v);
	dl_spool_put_columns(out, &learner_columns);
	for (uint32_t p = 0; p < v->fragments; p++)
		dl_spool_put_row(out, p, &learner_columns, v->version + p);
}

int dl_spool_learner_parse(struct dl_spool_learner *v, const void *text,
	size_t n, struct dl_err *e)
{
	struct dl_spool_lines t;
	void *rows = NULL;
	int code;

	*v = (struct dl_spool_learner){0};
	dl_spool_lines_init(&t, text, n, e);
	code = dl_spool_take_keys(&t, &learner_keys, v);
	if (!code)
		code = dl_spool_take_rows(&t, &learner_columns,
			sizeof *v->version, &rows, &v->fragments);
	v->version = rows;
	if (code)
		dl_spool_learner_release(v);
	return code;
}

void dl_spool_learner_release(struct dl_spool_learner *v)
{
	free(v->version);
	*v = (struct dl_spool_learner){0};
}

void dl_spool_taken_write(const struct dl_spool_taken *v, struct dl_buf *out)
{
	dl_spool_put_keys(out, &taken_keys, v);
	dl_spool_put_columns(out, &taken_columns);
	for (uint32_t p = 0; p < v->fragments; p++)
		dl_spool_put_row(out, p, &taken_columns, v->fragment + p);
}

/* There is a reason exactly when a push was refused. */
static int check_reasons(
	const struct dl_spool_taken *v, struct dl_spool_lines *t)
{
	for (uint32_t p = 0; p < v->fragments; p++)
		if ((v->fragment[p].word == DL_TAKEN_REFUSED) !=
			(v->fragment[p].reason != DL_REFUSED_NOT))
			return dl_spool_refuse(
				t, "a fragment contradicts itself");
	return 0;
}

int dl_spool_taken_parse(
	struct dl_spool_taken *v, const void *text, size_t n, struct dl_err *e)
{
	struct dl_spool_lines t;
	void *rows = NULL;
	int code;

	*v = (struct dl_spool_taken){0};
	dl_spool_lines_init(&t, text, n, e);
	code = dl_spool_take_keys(&t, &taken_keys, v);
	if (!code)
		code = dl_spool_take_rows(&t, &taken_columns,
			sizeof *v->fragment, &rows, &v->fragments);
	v->fragment = rows;
	if (!code)
		code = check_reasons(v, &t);
	if (code)
		dl_spool_taken_release(v);
	return code;
}

void dl_spool_taken_release(struct dl_spool_taken *v)
{
	free(v->fragment);
	*v = (struct dl_spool_taken){0};
}

void dl_spool_open_write(const struct dl_spool_open *v, struct dl_buf *out)
{
	dl_spool_put_keys(out, &open_keys, v);
	for (size_t i = 0; i < v->names; i++)
		dl_buf_printf(out, "%s\n", v->name[i]);
}

static int take_name(
	struct dl_spool_open *v, size_t *cap, const char *name, size_t n)
{
	char *to;

	if (!dl_name_ok(name, n))
		return -1;
	if (v->names == *cap) {
		*cap = *cap ? 2 * *cap : 16;
		v->name = dl_resize(v->name, *cap, sizeof *v->name);
	}
	to = v->name[v->names];
	memcpy(to, name, n);
	to[n] = 0;
	if (v->names && strcmp(to, v->name[v->names - 1]) <= 0)
		return -1;
	v->names++;
	return 0;
}

int dl_spool_open_parse(
	struct dl_spool_open *v, const void *text, size_t n, struct dl_err *e)
{
	struct dl_spool_lines t;
	size_t cap = 0, length;
	const char *line;
	int got = 0, code;

	*v = (struct dl_spool_open){0};
	dl_spool_lines_init(&t, text, n, e);
	code = dl_spool_take_keys(&t, &open_keys, v);
	while (!code && (got = dl_spool_line(&t, &line, &length)) > 0)
		if (take_name(v, &cap, line, length))
			code = dl_spool_refuse(&t, "not the next good name");
	if (got < 0)
		code = DL_DATA;
	if (code)
		dl_spool_open_release(v);
	return code;
}

void dl_spool_open_release(struct dl_spool_open *v)
{
	free(v->name);
	*v = (struct dl_spool_open){0};
}

int dl_spool_open_has(const struct dl_spool_open *v, const char *name)
{
	for (size_t i = 0; i < v->names; i++)
		if (!strcmp(v->name[i], name))
			return 1;
	return 0;
}
