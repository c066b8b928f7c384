#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/split.h"

/* The disk is waited for when others have been written since. */
enum { BEHIND = 16 };

struct options {
	const char *layout, *folder, *model;
	int zstd;
};

static int begin(const struct options *s, const char *path, struct dl_output *o,
	struct dl_err *e)
{
	int rc = dl_output_open(o, path, e);

	if (!rc)
		dl_output_compress(o, s->zstd);
	return rc;
}

static int to_stdout(const struct options *s, const struct dl_layout *l,
	const struct dl_model *m, struct dl_err *e)
{
	struct dl_output o;
	int rc = begin(s, "-", &o, e);

	for (uint32_t i = 0; !rc && i < dl_split_records(l, m); i++)
		rc = dl_split_write(l, m, i, &o, e);
	if (!rc)
		rc = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

static int begin_one(const struct options *s, const struct dl_layout *l,
	uint32_t i, struct dl_output *o, struct dl_err *e)
{
	const char *end = s->zstd ? ".frag.zst" : ".frag";
	char *path = i < l->fragments
			     ? dl_sprintf("%s/%03u%s", s->folder, i, end)
			     : dl_sprintf("%s/local%s", s->folder, end);
	int rc = begin(s, path, o, e);

	free(path);
	return rc;
}

/* Of those before the n-th, from *safe on. */
static int wait_for_disk(
	struct dl_output *o, uint32_t *safe, uint32_t n, struct dl_err *e)
{
	int rc = 0;

	while (!rc && *safe < n)
		rc = dl_output_finish(&o[(*safe)++], e);
	return rc;
}

/* All of them show, or none. */
static int to_folder(const struct options *s, const struct dl_layout *l,
	const struct dl_model *m, struct dl_err *e)
{
	uint32_t n = dl_split_records(l, m), i = 0, safe = 0;
	struct dl_output_folder folder;
	struct dl_output *o;
	int rc = dl_output_folder_open(&folder, s->folder, e);

	if (rc)
		return rc;
	o = dl_alloc_array(n, sizeof *o);
	while (!rc && i < n) {
		rc = begin_one(s, l, i, &o[i], e);
		/* Perhaps too many are open. */
		if (rc && safe < i && !(rc = wait_for_disk(o, &safe, i, e)))
			rc = begin_one(s, l, i, &o[i], e);
		if (!rc)
			rc = dl_split_write(l, m, i, &o[i], e);
		i++;
		if (!rc && i > BEHIND)
			rc = wait_for_disk(o, &safe, i - BEHIND, e);
	}
	if (!rc && n)
		rc = dl_output_commit_all(o, n, e);
	while (rc && i > 0)
		dl_output_abort(&o[--i]);
	free(o);
	dl_output_folder_close(&folder);
	return rc;
}

static int split(const struct options *s)
{
	struct dl_model m = DL_MODEL_INIT;
	struct dl_layout l;
	struct dl_err e;
	int rc = dl_layout_read(&l, s->layout, &e);

	if (!rc)
		rc = frag_open(&m, s->model, &e);
	if (!rc && (rc = dl_layout_match(&l, &m, &e)))
		dl_at(&e, "%s", s->model);
	if (!rc)
		rc = s->folder ? to_folder(s, &l, &m, &e)
			       : to_stdout(s, &l, &m, &e);
	dl_model_close(&m);
	dl_layout_release(&l);
	return rc ? cmd_fail(&e) : 0;
}

int frag_split(int argc, char **argv)
{
	static const struct option options[] = {
		{"layout", required_argument, NULL, 'l'},
		{"output", required_argument, NULL, 'o'}, CMD_ZSTD_LONG,
		CMD_LONG, {0}};
	struct options s = {.model = "-"};
	int opt;

	while ((opt = getopt_long(argc, argv, "l:o:" CMD_ZSTD CMD_SHORT,
			options, NULL)) != -1)
		switch (opt) {
		case 'l':
			s.layout = optarg;
			break;
		case 'o':
			s.folder = optarg;
			break;
		case 'z':
			s.zstd = cmd_zstd(optarg);
			break;
		default:
			cmd_common_option(opt);
		}
	if (!s.layout)
		cmd_usage("split needs a layout (-l)");
	if (argc - optind > 1)
		cmd_usage("split takes one model");
	if (optind < argc)
		s.model = argv[optind];
	return split(&s);
}
