/*
 * A main for a fuzz target under any compiler: gives it the files of its
 * corpus, the folder FUZZ_CORPUS. A target that finds a fault aborts.
 */
#include <dirent.h>
#include <string.h>

#include "base/file.h"
#include "fuzz.h"

#include "../tap.h"

static int is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void replay(const char *folder, const char *name)
{
	struct dl_buf bytes = DL_BUF_INIT;
	struct dl_err e = {.text = "done"};
	char *path = dl_sprintf("%s/%s", folder, name);
	int code = dl_read_file(path, (size_t)1 << 24, &bytes, &e);

	if (!code)
		LLVMFuzzerTestOneInput(bytes.data, bytes.len);
	ok(!code, "%s: %s", name, e.text);
	dl_buf_free(&bytes);
	free(path);
}

int main(void)
{
	const char *top = getenv("abs_top_srcdir");
	char *folder = dl_sprintf(
		"%s/tests/fuzz/corpus/" FUZZ_CORPUS, top ? top : ".");
	struct dirent **entry;
	int n = scandir(folder, &entry, is_file, alphasort);

	ok(n > 0, "%s has files", folder);
	for (int i = 0; i < n; i++) {
		replay(folder, entry[i]->d_name);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	free(folder);
	return done_testing();
}
