/*
 * dl-join: join fragments back into a model, from files, a pipe or a live run.
 */
#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/join/live.h"
#include "tensor/join.h"

static const char usage[] =
	"usage: dl-join [-b BASE] [-l LAYOUT] [-o FILE] [-z[LEVEL]] [SOURCE ...]\n"
	"       dl-join [-o FILE] [-z[LEVEL]] [--insecure] LINK\n"
	"  -b, --base BASE      the model that deltas are added to\n"
	"  -l, --layout LAYOUT  what the model must hold\n"
	"  -o, --output FILE    the model, instead of standard output\n"
	"  -z, --zstd[=LEVEL]   compress it, level 1 to 19 (3)\n"
	"  --insecure           allow plain tcp\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

struct options {
	const char *base, *layout, *output;
	char **source;
	int sources, zstd;
	enum dl_insecure allowed;
};

enum { INSECURE = 256 };

static int read_sources(struct dl_model *parts, const struct options *o,
	struct dl_err *e)
{
	int rc = 0;

	for (int i = 0; i < o->sources && !rc; i++)
		rc = dl_model_add(parts, o->source[i], e);
	return rc;
}

static int write_model(const struct dl_join *j, const struct options *options,
	struct dl_err *e)
{
	struct dl_output o;
	int rc = dl_output_open(&o, options->output, e);

	dl_output_compress(&o, options->zstd);
	if (!rc)
		rc = dl_join_write(j, &o, e);
	if (!rc)
		rc = dl_output_commit(&o, e);
	dl_output_abort(&o);
	return rc;
}

static int join(const struct options *o)
{
	struct dl_model parts = DL_MODEL_INIT, base = DL_MODEL_INIT;
	struct dl_layout layout = {0};
	struct dl_join j = {&parts, o->base ? &base : NULL,
		o->layout ? &layout : NULL};
	struct dl_err e;
	int rc = 0;

	if (o->layout)
		rc = dl_layout_read(&layout, o->layout, &e);
	if (!rc && o->base)
		rc = dl_model_open(&base, o->base, &e);
	if (!rc)
		rc = read_sources(&parts, o, &e);
	if (!rc)
		rc = dl_join_check(&j, &e);
	if (!rc)
		rc = write_model(&j, o, &e);
	dl_model_close(&parts);
	dl_model_close(&base);
	dl_layout_release(&layout);
	return rc ? cmd_fail(&e) : 0;
}

static int join_link(const struct options *o)
{
	struct dl_err e;

	if (o->sources != 1 || o->base || o->layout)
		cmd_usage("a link stands alone: its syncer has the layout");
	return join_live(o->source[0], o->allowed, o->output, o->zstd, &e)
		? cmd_fail(&e)
		: 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"base", required_argument, NULL, 'b'},
		{"layout", required_argument, NULL, 'l'},
		{"output", required_argument, NULL, 'o'},
		{"insecure", no_argument, NULL, INSECURE}, CMD_ZSTD_LONG,
		CMD_LONG, {0}};
	static char dash[] = "-", *standard_input[] = {dash};
	struct options o = {.output = "-", .source = standard_input,
		.sources = 1};
	int opt;

	cmd_init("dl-join", usage);
	dl_output_on_signal();
	while ((opt = getopt_long(argc, argv, "b:l:o:" CMD_ZSTD CMD_SHORT,
			options, NULL))
		!= -1)
		switch (opt) {
		case 'b':
			o.base = optarg;
			break;
		case 'l':
			o.layout = optarg;
			break;
		case 'o':
			o.output = optarg;
			break;
		case 'z':
			o.zstd = cmd_zstd(optarg);
			break;
		case INSECURE:
			if (o.allowed != DL_INSECURE_ANYWHERE)
				o.allowed++;
			break;
		default:
			cmd_common_option(opt);
		}
	if (optind < argc) {
		o.source = argv + optind;
		o.sources = argc - optind;
	}
	for (int i = 0; i < o.sources; i++)
		if (join_is_link(o.source[i]))
			return join_link(&o);
	return join(&o);
}
