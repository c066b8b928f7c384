#include <string.h>

#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "cmd/replay/replay.h"

enum { RECORD = SYNC_OPTIONS, WITHOUT };

int sync_replay(int argc, char **argv)
{
	static const char shorts[] = "+" SYNC_SHORT CMD_SHORT;
	static const struct option longs[] = {
		{"record", required_argument, NULL, RECORD},
		{"without", required_argument, NULL, WITHOUT}, SYNC_LONG,
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
		else if (!sync_option(&o.sync, opt))
			cmd_common_option(opt);
	if (o.without && !dl_name_ok(o.without, strlen(o.without)))
		cmd_usage("--without %s: not a name", o.without);
	if (argc - optind != 2)
		cmd_usage("replay: a tape, and the model that the run began "
			  "with");
	if (!o.sync.store || !o.record)
		cmd_usage("replay: where are --record and the new --store?");
	o.tape = argv[optind];
	o.sync.model = argv[optind + 1];
	code = replay_run(&o, &e);
	if (code)
		return cmd_fail(&e);
	return cmd_flush();
}
