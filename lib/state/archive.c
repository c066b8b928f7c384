#include "state/archive.h"

#include <pthread.h>

#include "base/library.h"

#define NAME(name) "archive_" #name,
static const char *const names[] = {DL_ARCHIVE(NAME)};
#undef NAME

struct dl_archive dl_archive;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct dl_err why; /* code 0: it is loaded */

static void load(void)
{
	dl_library_load(DL_LIBARCHIVE, names, sizeof names / sizeof *names,
		&dl_archive, &why);
}

int dl_archive_load(struct dl_err *e)
{
	pthread_once(&once, load);
	return why.code ? dl_fail(e, why.code, "%s", why.text) : 0;
}
