/*
 * dl-frag: plan fragments, cut models into fragments, show, check and subtract
 * them.
 */
#include "base/file.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"

static const char usage[] =
	"usage: dl-frag plan [-n P] [-s STRATEGY] [--rule PATTERN=RULE]\n"
	"                    [--skip PATTERN] [--alias NAME=TARGET] [MODEL]\n"
	"       dl-frag split -l LAYOUT [-o FOLDER] [-z[LEVEL]] [MODEL]\n"
	"       dl-frag show [-Hj] [FILE ...]\n"
	"       dl-frag check [-l LAYOUT] [-e OTHER] [-t TOLERANCE] [FILE]\n"
	"       dl-frag diff [-l LAYOUT] [-m KEY=VALUE] [-o FILE] [-p FRAGMENT]\n"
	"                    [-z[LEVEL]] BASE [NEW]\n"
	"  -n, --fragments P        how many fragments (24)\n"
	"  -s, --strategy STRATEGY  balanced, tensor, layer or strided\n"
	"      --rule PATTERN=RULE  merge what matches by rda, mean, stat, "
	"last\n"
	"      --skip PATTERN       leave what matches local\n"
	"      --alias NAME=TARGET  NAME is tied to TARGET\n"
	"  -l, --layout LAYOUT      a layout that plan wrote\n"
	"  -p, --fragment FRAGMENT  that one alone\n"
	"  -o, --output             where to write, instead of standard output\n"
	"  -z, --zstd[=LEVEL]       compress it, level 1 to 19 (3)\n"
	"  -H, --hash               the hash of each tensor's bytes too\n"
	"  -j, --json               one JSON object a record\n"
	"  -e, --equal OTHER        does it hold the same tensors as OTHER?\n"
	"  -t, --tolerance T        values may differ by T\n"
	"  -m, --meta KEY=VALUE     what a delta says of itself\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

static const struct cmd_command commands[] = {
	{"plan", frag_plan},
	{"split", frag_split},
	{"show", frag_show},
	{"check", frag_check},
	{"diff", frag_diff},
};

int frag_open(struct dl_model *m, const char *path, struct dl_err *e)
{
	int rc;

	*m = (struct dl_model)DL_MODEL_INIT;
	rc = dl_model_add(m, path, e);
	if (!rc && (rc = dl_model_list(m, e)))
		dl_at(e, "%s", m->file[0].path);
	return rc;
}

int main(int argc, char **argv)
{
	cmd_init("dl-frag", usage);
	dl_output_on_signal();
	return cmd_dispatch(
		argc, argv, commands, sizeof commands / sizeof *commands);
}
