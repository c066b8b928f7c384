#include "cmd/dl-sync.h"

#include <string.h>

#include "cmd/cmd.h"

static const char usage[] =
	"usage: dl-sync serve [-qv] [-H steps] [-o model] [--run name]\n"
	"                [--layout file] [--fragments n] [--preset name]\n"
	"                [--tau steps] [--quorum n] [--grace how]\n"
	"                [--gamma share] [--min-h steps] [--late how]\n"
	"                [--below-quorum how] [--rule name] [--outer-lr rate]\n"
	"                [--momentum mu] [--nesterov | --no-nesterov]\n"
	"                [--apply how] [--wait | --no-wait] [--tokens n]\n"
	"                [--steps n] [--max-norm x] [--max-rate x]\n"
	"                [--stall duration] [--dead duration]\n"
	"                [--end-timeout duration] [--tape file]\n"
	"                [--threads n] [--insecure]\n"
	"                --store folder --listen link [model]\n"
	"       dl-sync end [-q] [--insecure] link\n"
	"       dl-sync -h | -V\n";

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {{"serve", sync_serve}, {"end", sync_end}};
	static const struct option common[] = {CMD_LONG, {NULL, 0, NULL, 0}};
	int opt, at;

	cmd_init("dl-sync", usage);
	while ((opt = getopt_long(argc, argv, "+" CMD_SHORT, common, NULL)) !=
		-1)
		cmd_common_option(opt);
	if (optind == argc)
		cmd_usage("no command");
	at = optind;
	optind = 0; /* getopt starts afresh, past the command */
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
		if (!strcmp(argv[at], commands[i].name))
			return commands[i].run(argc - at, argv + at);
	cmd_usage("%s: no such command", argv[at]);
}
