/*
 * dl-join: join fragments back into a model, from files, a pipe, a checkpoint
 * or a live run.
 */
#include <string.h>

#include "base/output.h"
#include "cmd/cmd.h"
#include "cmd/join/checkpoint.h"
#include "cmd/join/live.h"
#include "cmd/join/state.h"
#include "cmd/key.h"
#include "cmd/link.h"
#include "state/checkpoint.h"
#include "tensor/join.h"

static const char usage[] =
	"usage: dl-join [-b BASE] [-l LAYOUT] [-o FILE] [-z[LEVEL]]\n"
	"               [--shard-size SIZE] [SOURCE ...]\n"
	"       dl-join [-o FILE] [-z[LEVEL]] [--shard-size SIZE] CHECKPOINT\n"
	"       dl-join [-o FILE] [-z[LEVEL]] [--shard-size SIZE]\n"
	"               [--key FILE] [--buffers SIZE] [--congestion NAME]\n"
	"               [--insecure] LINK\n"
	"       dl-join --state FOLDER --key FILE [--buffers SIZE]\n"
	"               [--congestion NAME] [--insecure] LINK\n"
	"  -b, --base BASE        the model that deltas are added to\n"
	"  -l, --layout LAYOUT    what the model must hold\n"
	"  -o, --output FILE      the model, instead of standard output\n"
	"  -z, --zstd[=LEVEL]     compress it, level 1 to 19 (3)\n"
	"      --shard-size SIZE  a sharded set in folder FILE\n"
	"      --state FOLDER     a learner's state instead of the model\n"
	"      --key FILE         our key, for LINK tcp:KEY@HOST:PORT\n"
	"      --buffers SIZE     of tcp, to send and to receive\n"
	"      --congestion NAME  congestion control of tcp\n"
	"      --insecure         allow plain tcp\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

struct options {
	const char *base, *layout;
	struct dl_save save;
	char **source;
	int sources;
	struct dl_tcp tcp; /* of a link */
	const char *key;   /* likewise: a file */
	const char *state; /* the folder for a state */
	enum dl_insecure allowed;
};

enum { INSECURE = 256, SHARD_SIZE, STATE, KEY };

static int read_sources(struct dl_model *parts, const struct options *o,
	struct dl_err *e)
{
	int rc = 0;

	for (int i = 0; i < o->sources && !rc; i++)
		rc = dl_model_add(parts, o->source[i], e);
	return rc;
}

static int join(const struct options *o)
{
	struct dl_model parts = DL_MODEL_INIT, base = DL_MODEL_INIT;
	struct dl_layout layout = {0};
	struct dl_join j = {&parts, o->base ? &base : NULL,
		o->layout ? &layout : NULL};
	struct dl_err e;
	int rc = dl_save_check(&o->save, &e);

	if (!rc && o->layout)
		rc = dl_layout_read(&layout, o->layout, &e);
	if (!rc && o->base)
		rc = dl_model_open(&base, o->base, &e);
	if (!rc)
		rc = read_sources(&parts, o, &e);
	if (!rc)
		rc = dl_join_check(&j, &e);
	if (!rc)
		rc = dl_join_write(&j, &o->save, &e);
	dl_model_close(&parts);
	dl_model_close(&base);
	dl_layout_release(&layout);
	return rc ? cmd_fail(&e) : 0;
}

static int join_link(const struct options *o)
{
	struct dl_address a;
	struct dl_key *key;
	struct dl_err e;
	int code;

	if (o->sources != 1 || o->base || o->layout)
		cmd_usage("a link stands alone: its syncer has the layout");
	if (dl_address_parse(&a, o->source[0], &e))
		cmd_usage("%s", e.text);
	link_set_up(&a, 1, &o->tcp);
	link_allow(&a, 1, o->allowed);
	key = key_use(o->key, &a, 1);
	code = join_live(&a, o->allowed, &o->save, &e);
	dl_key_free(key);
	return code ? cmd_fail(&e) : 0;
}

static int take_state(const struct options *o)
{
	struct dl_address a;
	struct dl_key *key;
	struct dl_err e;
	int code;

	if (o->sources != 1 || o->base || o->layout || o->save.zstd ||
		o->save.shard_size || strcmp(o->save.path, "-") != 0)
		cmd_usage("--state: with --key and a link only");
	if (dl_address_parse(&a, o->source[0], &e))
		cmd_usage("--state: %s", e.text);
	if (!o->key || (a.kind != DL_LINK_TCP && a.kind != DL_LINK_UNIX))
		cmd_usage("--state: needs --key, and a link of tcp or unix");
	link_set_up(&a, 1, &o->tcp);
	link_allow(&a, 1, o->allowed);
	key = key_use_with_peers(o->key, &a, 1);
	code = join_state(&a, o->allowed, key, o->state, &e);
	dl_key_free(key);
	return code ? cmd_fail(&e) : 0;
}

static int join_one(const struct options *o)
{
	struct dl_err e;

	if (o->sources != 1 || o->base || o->layout)
		cmd_usage("a checkpoint stands alone: it has its layout");
	return join_checkpoint(o->source[0], &o->save, &e) ? cmd_fail(&e) : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"base", required_argument, NULL, 'b'},
		{"layout", required_argument, NULL, 'l'},
		{"output", required_argument, NULL, 'o'},
		{"shard-size", required_argument, NULL, SHARD_SIZE},
		{"state", required_argument, NULL, STATE},
		{"key", required_argument, NULL, KEY},
		{"insecure", no_argument, NULL, INSECURE}, LINK_LONG,
		CMD_ZSTD_LONG, CMD_LONG, {0}};
	static char dash[] = "-", *standard_input[] = {dash};
	struct options o = {.save.path = "-", .source = standard_input,
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
			o.save.path = optarg;
			break;
		case 'z':
			o.save.zstd = cmd_zstd(optarg);
			break;
		case SHARD_SIZE:
			o.save.shard_size = cmd_size("--shard-size", optarg);
			if (!o.save.shard_size)
				cmd_usage("--shard-size %s: holds nothing",
					optarg);
			break;
		case STATE:
			o.state = optarg;
			break;
		case KEY:
			o.key = optarg;
			break;
		case INSECURE:
			link_insecure(&o.allowed);
			break;
		default:
			if (!link_option(&o.tcp, opt))
				cmd_common_option(opt);
		}
	if (optind < argc) {
		o.source = argv + optind;
		o.sources = argc - optind;
	}
	if (o.save.shard_size && !strcmp(o.save.path, "-"))
		cmd_usage("--shard-size needs a folder (-o)");
	if (o.save.shard_size && o.save.zstd)
		cmd_usage("--shard-size and -z: other tools read sets plain");
	if (o.state)
		return take_state(&o);
	for (int i = 0; i < o.sources; i++)
		if (join_is_link(o.source[i]))
			return join_link(&o);
	link_set_up(NULL, 0, &o.tcp);
	link_allow(NULL, 0, o.allowed);
	key_use(o.key, NULL, 0);
	for (int i = 0; i < o.sources; i++)
		if (dl_checkpoint_is(o.source[i]))
			return join_one(&o);
	return join(&o);
}
