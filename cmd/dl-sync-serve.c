#include "cmd/dl-sync.h"
#include "cmd/serve/server.h"

int sync_serve(int argc, char **argv)
{
	struct serve_options o;
	int code;

	serve_options_read(&o, argc, argv);
	code = server_run(&o);
	dl_key_free(o.key);
	return code;
}
