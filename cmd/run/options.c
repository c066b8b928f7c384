#include "cmd/run/options.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"

enum { STALE = SYNC_OPTIONS, KEEP, RECORD };

static const char shorts[] = "+" SYNC_SHORT CMD_SHORT;
static const struct option longs[] = {
	{"stale", required_argument, NULL, STALE},
	{"keep", required_argument, NULL, KEEP},
	{"record", required_argument, NULL, RECORD},
	SYNC_LONG,
	CMD_LONG,
	{NULL, 0, NULL, 0},
};

static void read_option(struct run_options *o, int opt)
{
	switch (opt) {
	case STALE:
		o->stale_ns = cmd_duration("--stale", optarg);
		break;
	case KEEP:
		o->keep_ns = cmd_duration("--keep", optarg);
		break;
	case RECORD:
		o->record = optarg;
		break;
	default:
		if (!sync_option(&o->sync, opt))
			cmd_common_option(opt);
	}
}

void run_options_read(struct run_options *o, int argc, char **argv)
{
	static const int64_t minute = 60 * DL_SECOND;
	int opt;

	*o = (struct run_options){
		.stale_ns = 60 * minute, .keep_ns = 10 * minute};
	sync_options_begin(&o->sync, argc, argv, shorts, longs);
	/* Time passes in steps as long as those of whoever starts passes. */
	o->sync.dead_ns = 10 * minute;
	o->sync.config.passes = 1;
	o->sync.config.stall_ns = 10 * minute;
	o->sync.config.end_ns = 10 * minute;
	while ((opt = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		read_option(o, opt);
	if (argc - optind < 1 || argc - optind > 2)
		cmd_usage("run: a spool, and at most one model");
	o->spool = argv[optind];
	o->sync.model = argv[optind + 1];
	if (!o->sync.store)
		o->sync.store = o->own_store =
			dl_sprintf("%s/store", o->spool);
}

void run_options_release(struct run_options *o)
{
	free(o->own_store);
}
