#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/diff.h"

static const uint32_t ALL = UINT32_MAX; /* fragments */

struct options {
	const char *layout, *output, *base, *model;
	uint32_t fragment; /* or ALL */
	int zstd;
	struct dl_diff_meta *meta;
	size_t metas;
};

static void take_meta(struct options *d, char *s)
{
	char *equal = strchr(s, '=');
	struct dl_diff_meta *m;

	if (!equal || equal == s || !dl_utf8_valid(s, strlen(s)))
		cmd_usage("-m %s: not KEY=VALUE", s);
	*equal = 0;
	for (size_t i = 0; i < d->metas; i++)
		if (!strcmp(d->meta[i].key, s))
			cmd_usage("-m %s: that key again", s);
	d->meta = dl_resize(d->meta, d->metas + 1, sizeof *d->meta);
	m = &d->meta[d->metas++];
	*m = (struct dl_diff_meta){s, equal + 1};
}

static int write_deltas(const struct options *d, const struct dl_model *base,
	const struct dl_model *theta, const struct dl_layout *l,
	struct dl_err *e)
{
	uint32_t n = l ? l->fragments : 1, i = 0;
	struct dl_output o;
	int rc;

	if (d->fragment != ALL && d->fragment >= n)
		return dl_fail(e, DL_DATA, "%s: has no fragment %u", d->layout,
			d->fragment);
	if (d->fragment != ALL)
		n = (i = d->fragment) + 1;
	rc = dl_output_open(&o, d->output, e);
	dl_output_compress(&o, d->zstd);
	for (; !rc && i < n; i++)
		rc = dl_diff_write(base, theta, l, i, d->meta, d->metas, &o, e);
	if (!rc)
		rc = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

static int diff(const struct options *d)
{
	struct dl_model base = DL_MODEL_INIT, theta = DL_MODEL_INIT;
	struct dl_layout layout = {0}, *l = d->layout ? &layout : NULL;
	struct dl_err e;
	int rc = l ? dl_layout_read(l, d->layout, &e) : 0;

	if (!rc)
		rc = frag_open(&base, d->base, &e);
	if (!rc)
		rc = frag_open(&theta, d->model, &e);
	if (!rc)
		rc = write_deltas(d, &base, &theta, l, &e);
	dl_model_close(&theta);
	dl_model_close(&base);
	dl_layout_release(&layout);
	return rc ? cmd_fail(&e) : 0;
}

int frag_diff(int argc, char **argv)
{
	static const struct option options[] = {
		{"layout", required_argument, NULL, 'l'},
		{"meta", required_argument, NULL, 'm'},
		{"output", required_argument, NULL, 'o'},
		{"fragment", required_argument, NULL, 'p'}, CMD_ZSTD_LONG,
		CMD_LONG, {0}};
	struct options d = {.output = "-", .model = "-", .fragment = ALL};
	int opt, code;

	while ((opt = getopt_long(argc, argv, "l:m:o:p:" CMD_ZSTD CMD_SHORT,
			options, NULL)) != -1)
		switch (opt) {
		case 'l':
			d.layout = optarg;
			break;
		case 'm':
			take_meta(&d, optarg);
			break;
		case 'o':
			d.output = optarg;
			break;
		case 'p':
			d.fragment = (uint32_t)cmd_u64(
				"-p", optarg, 0, ALL - 1);
			break;
		case 'z':
			d.zstd = cmd_zstd(optarg);
			break;
		default:
			cmd_common_option(opt);
		}
	if (argc - optind < 1 || argc - optind > 2)
		cmd_usage("diff takes a base and a model");
	if (d.fragment != ALL && !d.layout)
		cmd_usage("-p needs a layout");
	d.base = argv[optind];
	if (optind + 1 < argc)
		d.model = argv[optind + 1];
	code = diff(&d);
	free(d.meta);
	return code;
}
