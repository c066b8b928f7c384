#include "cmd/dl-sync.h"

#include "cmd/cmd.h"

static const char usage[] =
	"usage: dl-sync serve [-qv] [-H steps] [-o model] [--run name]\n"
	"                [--layout file] [--fragments n] [--preset name]\n"
	"                [--tau steps] [--quorum n] [--grace how]\n"
	"                [--gamma share] [--min-h steps] [--late how]\n"
	"                [--below-quorum how] [--rule name] [--outer-lr rate]\n"
	"                [--momentum mu] [--nesterov | --no-nesterov]\n"
	"                [--global codec] [--apply how] [--wait | --no-wait]\n"
	"                [--tokens n] [--steps n] [--max-norm x] [--max-rate "
	"x]\n"
	"                [--stall duration] [--dead duration]\n"
	"                [--end-timeout duration] [--tape file]\n"
	"                [--record folder] [--commit n]\n"
	"                [--checkpoint folder] [--checkpoint-every how]\n"
	"                [--checkpoint-keep n] [--threads n] [--key file]\n"
	"                [--authorized file] [--max-learners n] [--streams n]\n"
	"                [--window size] [--rate rate] [--buffers size]\n"
	"                [--congestion name] [--insecure] [--from checkpoint]\n"
	"                --store folder --listen link [model]\n"
	"       dl-sync run [-qv] [-H steps] [-o model] [--run name]\n"
	"                [--layout file] [--fragments n] [--global codec]\n"
	"                [--preset name] [--tau steps] [--quorum n]\n"
	"                [--grace how] [--gamma share] [--min-h steps]\n"
	"                [--late how] [--below-quorum how] [--rule name]\n"
	"                [--outer-lr rate] [--momentum mu]\n"
	"                [--nesterov | --no-nesterov] [--apply how]\n"
	"                [--wait | --no-wait] [--tokens n] [--steps n]\n"
	"                [--max-norm x] [--max-rate x] [--stall duration]\n"
	"                [--dead duration] [--end-timeout duration]\n"
	"                [--stale duration] [--keep duration] [--record folder]\n"
	"                [--threads n] [--store folder] spool [model]\n"
	"       dl-sync merge [-nqv] [-l layout] [-o file] [-s state]\n"
	"                [-u file] [-w name=weight] [-z[level]] [--rule name]\n"
	"                [--outer-lr rate] [--momentum mu]\n"
	"                [--nesterov | --no-nesterov] [--threads n]\n"
	"                base delta ...\n"
	"       dl-sync attach [-q] [--as name] [--allow role] socket\n"
	"       dl-sync check [-q] file|folder ...\n"
	"       dl-sync replay [-q] [--without name] [--from checkpoint] tape\n"
	"       dl-sync replay [-q] [--layout file] [--fragments n]\n"
	"                [--preset name] [--rule name] [--outer-lr rate]\n"
	"                [--momentum mu] [--nesterov | --no-nesterov]\n"
	"                [--global codec] [--threads n] [--without name]\n"
	"                [--from checkpoint] --store folder --record folder\n"
	"                tape [model]\n"
	"       dl-sync checkpoint [-qv] [--key file] [--insecure] link file\n"
	"       dl-sync end [-q] [--key file] [--insecure] link\n"
	"       dl-sync -h | -V\n"
	"serve, run:\n"
	"  -H, --h steps            between two rounds of a fragment\n"
	"  -o, --output model       the run's model, at its end\n"
	"merge:\n"
	"  -l, --layout layout      how tensors are cut and merged\n"
	"  -n, --no-outer           no outer step: the merged update\n"
	"  -o, --output file        the new values, instead of standard output\n"
	"  -s, --state file         keep the momentum there\n"
	"  -u, --update file        the merged update too\n"
	"  -w, --weight name=weight  what a learner weighs\n"
	"  -z, --zstd[=level]       compress output, level 1 to 19 (3)\n"
	"all:\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

int main(int argc, char **argv)
{
	static const struct cmd_command commands[] = {{"serve", sync_serve},
		{"run", sync_run}, {"merge", sync_merge},
		{"attach", sync_attach}, {"check", sync_check}, {"checkpoint", sync_checkpoint},
		{"replay", sync_replay},
		{"end", sync_end}};

	cmd_init("dl-sync", usage);
	return cmd_dispatch(
		argc, argv, commands, sizeof commands / sizeof *commands);
}
