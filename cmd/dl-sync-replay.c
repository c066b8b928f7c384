#include <string.h>

#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "cmd/replay/replay.h"

enum { RECORD = SYNC_OPTIONS, WITHOUT, FROM };

/* A tape alone tells decisions; values need all of the rest. A run that began
 * from a checkpoint needs no model. */
static void take_operands(struct replay_options *o, int n, char **arg)
{
	int rest = o->record || o->sync.store || n == 2;

	if (n < 1 || n > 2)
		cmd_usage("replay: a tape, and perhaps the model that the run "
			  "began with");
	if (rest && (!o->record || !o->sync.store || (n != 2 && !o->from)))
		cmd_usage("replay: --record, the new --store and the model, or "
			  "--from, go together");
	o->tape = arg[0];
	o->sync.model = arg[1];
}

int sync_replay(int argc, char **argv)
{
	static const char shorts[] = "+" SYNC_SHORT CMD_SHORT;
	static const struct option longs[] = {
		{"record", required_argument, NULL, RECORD},
		{"without", required_argument, NULL, WITHOUT},
		{"from", required_argument, NULL, FROM}, SYNC_LONG,
		CMD_LONG, {NULL, 0, NULL, 0}};
	struct replay_options o = {.record = NULL};
	struct dl_err e;
	int opt, code;

	sync_options_begin(&o.sync, argc, argv, shorts, longs);
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		if (opt == RECORD)
			o.record = optarg;
		else if (opt == WITHOUT)
			o.without = optarg;
		else if (opt == FROM)
			o.from = optarg;
		else if (!sync_option(&o.sync, opt))
			cmd_common_option(opt);
	if (o.without && !dl_name_ok(o.without, strlen(o.without)))
		cmd_usage("--without %s: not a name", o.without);
	take_operands(&o, argc - optind, argv + optind);
	code = replay_run(&o, &e);
	if (code)
		return cmd_fail(&e);
	return cmd_flush();
}
