#include "cmd/dl-sync.h"
#include "cmd/serve/server.h"

int sync_serve(int argc, char **argv)
{
	struct serve_options o;

	serve_options_read(&o, argc, argv);
	return server_run(&o);
}
