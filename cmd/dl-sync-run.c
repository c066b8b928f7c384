#include "cmd/dl-sync.h"
#include "cmd/run/pass.h"

int sync_run(int argc, char **argv)
{
	struct run_options o;

	run_options_read(&o, argc, argv);
	return pass_run(&o);
}
