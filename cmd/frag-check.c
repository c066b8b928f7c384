#include <string.h>

#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/diff.h"
#include "tensor/layout.h"

static int has_fragments(const struct dl_model *m)
{
	for (size_t f = 0; f < m->files; f++)
		for (size_t r = 0; r < m->file[f].records; r++)
			if (dl_header_meta(&m->file[f].record[r].header,
				    "dl.fragment"))
				return 1;
	return 0;
}

/* The tensors of one record lie where the layout has them. */
static int check_fragment(const struct dl_layout *l, const struct dl_header *h,
	struct dl_err *e)
{
	const struct dl_string *hash = dl_header_meta(h, "dl.layout");
	uint64_t fragment;

	if (hash && strcmp(hash->s, l->hash))
		return dl_fail(e, DL_NO, "is of another layout");
	if (dl_header_meta_u64(h, "dl.fragment", &fragment, NULL))
		return 0;
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[i];
		const struct dl_layout_tensor *want =
			dl_layout_find(l, t->name.s, t->name.n);
		char name[80];

		dl_scrub(name, sizeof name, t->name.s, t->name.n);
		if (!want || want->fragment != fragment)
			return dl_fail(e, DL_NO,
				"tensor \"%s\" is not in fragment %llu of the "
				"layout",
				name, (unsigned long long)fragment);
		if (!dl_layout_same_shape(want, t))
			return dl_fail(e, DL_NO,
				"tensor \"%s\" has another shape than in the "
				"layout",
				name);
	}
	return 0;
}

static int check_fragments(const struct dl_layout *l, const struct dl_model *m,
	struct dl_err *e)
{
	const struct dl_records *file = m->file;
	int rc;

	for (; file < m->file + m->files; file++)
		for (size_t r = 0; r < file->records; r++) {
			rc = check_fragment(l, &file->record[r].header, e);
			if (rc && file->records > 1)
				dl_at(e, "record %zu", r);
			if (rc)
				return rc;
		}
	return 0;
}

static int check_layout(const char *path, struct dl_model *m, struct dl_err *e)
{
	struct dl_layout l;
	int rc = dl_layout_read(&l, path, e);

	if (rc)
		return rc;
	if (has_fragments(m))
		rc = check_fragments(&l, m, e);
	else if (!(rc = dl_model_list(m, e)) && dl_layout_match(&l, m, e))
		rc = DL_NO;
	dl_layout_release(&l);
	return rc;
}

static int check_equal(const char *path, struct dl_model *m, double tolerance,
	struct dl_err *e)
{
	struct dl_model other = DL_MODEL_INIT;
	int rc = dl_model_list(m, e);

	if (!rc)
		rc = frag_open(&other, path, e);
	if (!rc)
		rc = dl_diff_equal(m, &other, tolerance, e);
	dl_model_close(&other);
	return rc;
}

/* A stream may hold a fragment many times, so tensors are not listed unless
 * the question is about a model. */
static int check(const char *path, const char *layout, const char *other,
	double tolerance)
{
	struct dl_model m = DL_MODEL_INIT;
	struct dl_err e;
	int rc;

	m.headers_only = !other;
	rc = dl_model_add(&m, path, &e);
	if (!rc && layout)
		rc = check_layout(layout, &m, &e);
	if (!rc && other)
		rc = check_equal(other, &m, tolerance, &e);
	if (rc == DL_NO)
		dl_at(&e, "%s", m.file[0].path);
	e.code = rc;
	dl_model_close(&m);
	return rc ? cmd_fail(&e) : 0;
}

int frag_check(int argc, char **argv)
{
	static const struct option options[] = {
		{"layout", required_argument, NULL, 'l'},
		{"equal", required_argument, NULL, 'e'},
		{"tolerance", required_argument, NULL, 't'}, CMD_LONG, {0}};
	const char *layout = NULL, *other = NULL;
	double tolerance = -1;
	int opt;

	while ((opt = getopt_long(argc, argv, "l:e:t:" CMD_SHORT, options,
			NULL))
		!= -1)
		switch (opt) {
		case 'l':
			layout = optarg;
			break;
		case 'e':
			other = optarg;
			break;
		case 't':
			tolerance = cmd_double("-t", optarg, 0, 1e300);
			break;
		default:
			cmd_common_option(opt);
		}
	if (tolerance >= 0 && !other)
		cmd_usage("-t goes with -e");
	if (argc - optind > 1)
		cmd_usage("check takes one file");
	return check(optind < argc ? argv[optind] : "-", layout, other,
		tolerance);
}
