#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/diff.h"

static int write_deltas(const struct dl_model *base,
	const struct dl_model *theta, const struct dl_layout *l,
	const char *path, struct dl_err *e)
{
	uint32_t n = l ? l->fragments : 1;
	struct dl_output o;
	int rc = dl_output_open(&o, path, e);

	for (uint32_t i = 0; !rc && i < n; i++)
		rc = dl_diff_write(base, theta, l, i, &o, e);
	if (!rc)
		rc = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

static int diff(const char *layout, const char *out, const char *base_path,
	const char *path)
{
	struct dl_model base = DL_MODEL_INIT, theta = DL_MODEL_INIT;
	struct dl_layout l = {0};
	struct dl_err e;
	int rc = layout ? dl_layout_read(&l, layout, &e) : 0;

	if (!rc)
		rc = frag_open(&base, base_path, &e);
	if (!rc)
		rc = frag_open(&theta, path, &e);
	if (!rc)
		rc = write_deltas(&base, &theta, layout ? &l : NULL, out, &e);
	dl_model_close(&theta);
	dl_model_close(&base);
	dl_layout_release(&l);
	return rc ? cmd_fail(&e) : 0;
}

int frag_diff(int argc, char **argv)
{
	static const struct option options[] = {
		{"layout", required_argument, NULL, 'l'},
		{"output", required_argument, NULL, 'o'}, CMD_LONG, {0}};
	const char *layout = NULL, *out = "-";
	int opt;

	while ((opt = getopt_long(argc, argv, "l:o:" CMD_SHORT, options, NULL))
		!= -1)
		switch (opt) {
		case 'l':
			layout = optarg;
			break;
		case 'o':
			out = optarg;
			break;
		default:
			cmd_common_option(opt);
		}
	if (argc - optind < 1 || argc - optind > 2)
		cmd_usage("diff takes a base and a model");
	return diff(layout, out, argv[optind],
		optind + 1 < argc ? argv[optind + 1] : "-");
}
