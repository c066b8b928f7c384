#include "cmd/dl-sync.h"
#include "cmd/run/pass.h"

int sync_run(int argc, char **argv)
{
	struct run_options o;
	int code;

	run_options_read(&o, argc, argv);
	code = pass_run(&o);
	run_options_release(&o);
	return code;
}
