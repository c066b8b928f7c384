/*
 * A main for a fuzz target under any compiler: gives fuzz_NAME the files of
 * the folder corpus/NAME. A target that finds a fault aborts.
 */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fuzz.h"

#include "../tap.h"

static int is_file(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* As it is: dl_read_file would decompress. */
static void replay(const char *folder, const char *name)
{
	static uint8_t bytes[1 << 20];
	char *path = dl_sprintf("%s/%s", folder, name);
	struct dl_err e = {.text = "done"};
	ssize_t n = 0;
	int fd, code = dl_open_read(path, &fd, &e);

	if (!code) {
		n = dl_read_full(fd, bytes, sizeof bytes);
		close(fd);
		LLVMFuzzerTestOneInput(bytes, n < 0 ? 0 : (size_t)n);
	}
	ok(!code && n >= 0, "%s: %s", name, e.text);
	free(path);
}

int main(int argc, char **argv)
{
	const char *top = getenv("abs_top_srcdir");
	const char *name = argc ? strrchr(argv[0], '_') : NULL;
	char *folder = dl_sprintf("%s/tests/fuzz/corpus/%s", top ? top : ".",
		name ? name + 1 : "");
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
