#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/split.h"

static int to_folder(const struct dl_layout *l, const struct dl_model *m,
	const char *folder, struct dl_err *e)
{
	uint32_t n = dl_split_records(l, m);
	int rc = dl_make_folder(folder, e);

	for (uint32_t i = 0; !rc && i < n; i++) {
		char *path = i < l->fragments
			? dl_sprintf("%s/%03u.frag", folder, i)
			: dl_sprintf("%s/local.frag", folder);
		struct dl_output o;

		rc = dl_output_open(&o, path, e);
		if (!rc)
			rc = dl_split_write(l, m, i, &o, e);
		if (!rc)
			rc = dl_output_commit(&o, e);
		dl_output_abort(&o);
		free(path);
	}
	return rc;
}

static int to_stdout(const struct dl_layout *l, const struct dl_model *m,
	struct dl_err *e)
{
	uint32_t n = dl_split_records(l, m);
	struct dl_output o;
	int rc = dl_output_open(&o, "-", e);

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = dl_split_write(l, m, i, &o, e);
	return rc ? rc : dl_output_commit(&o, e);
}

static int split(const char *layout, const char *folder, const char *path)
{
	struct dl_model m = DL_MODEL_INIT;
	struct dl_layout l;
	struct dl_err e;
	int rc = dl_layout_read(&l, layout, &e);

	if (!rc)
		rc = frag_open(&m, path, &e);
	if (!rc && (rc = dl_layout_match(&l, &m, &e)))
		dl_at(&e, "%s", path);
	if (!rc)
		rc = folder ? to_folder(&l, &m, folder, &e)
			    : to_stdout(&l, &m, &e);
	dl_model_close(&m);
	dl_layout_release(&l);
	return rc ? cmd_fail(&e) : 0;
}

int frag_split(int argc, char **argv)
{
	static const struct option options[] = {
		{"layout", required_argument, NULL, 'l'},
		{"output", required_argument, NULL, 'o'}, CMD_LONG, {0}};
	const char *layout = NULL, *folder = NULL;
	int opt;

	while ((opt = getopt_long(argc, argv, "l:o:" CMD_SHORT, options, NULL))
		!= -1)
		switch (opt) {
		case 'l':
			layout = optarg;
			break;
		case 'o':
			folder = optarg;
			break;
		default:
			cmd_common_option(opt);
		}
	if (!layout)
		cmd_usage("split needs a layout (-l)");
	if (argc - optind > 1)
		cmd_usage("split takes one model");
	return split(layout, folder, optind < argc ? argv[optind] : "-");
}
