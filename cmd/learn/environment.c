#include "cmd/learn/environment.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"

void environment_set(char *variable[ENVIRONMENT],
	const char *list[ENVIRONMENT + 1], const struct environment *v)
{
	variable[0] = dl_sprintf("DL_NAME=%s", v->name);
	variable[1] = dl_sprintf("DL_SLOT=%" PRIu64, v->slot);
	variable[2] = dl_sprintf("DL_SEED=%" PRIu64, v->seed);
	variable[3] = dl_sprintf("DL_RUN=%s", v->run);
	variable[4] = dl_sprintf("DL_LAYOUT=%s", v->layout);
	for (int i = 0; i < ENVIRONMENT; i++)
		list[i] = variable[i];
	list[ENVIRONMENT] = NULL;
}

void environment_free(char *variable[ENVIRONMENT])
{
	for (int i = 0; i < ENVIRONMENT; i++)
		free(variable[i]);
}

int environment_layout(
	const struct dl_layout *l, const char *path, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int code;

	dl_layout_write(l, &text);
	code = dl_write_file(path, text.data, text.len, e);
	dl_buf_free(&text);
	return code;
}
