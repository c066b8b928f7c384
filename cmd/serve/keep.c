#include "cmd/serve/keep.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/output.h"

static const char suffix[] = ".tar.zst";

struct kept {
	uint64_t epoch, clock;
};

char *keep_name(
	const char *folder, const char *run, uint64_t epoch, uint64_t clock)
{
	return dl_sprintf("%s/%s.%" PRIu64 ".%" PRIu64 "%s", folder, run, epoch,
		clock, suffix);
}

/* The digits at s, after which more follows: what does, or NULL. */
static const char *take_number(const char *s, uint64_t *out)
{
	size_t n = strspn(s, "0123456789");
	char digits[24];

	if (!n || n >= sizeof digits)
		return NULL;
	memcpy(digits, s, n);
	digits[n] = '\0';
	return dl_parse_u64(digits, 0, UINT64_MAX, out) ? NULL : s + n;
}

/* What follows the name of a checkpoint of that run; NULL if none is there. */
static const char *take_name(
	const char *name, const char *run, struct kept *out)
{
	size_t n = strlen(run);

	if (strncmp(name, run, n) != 0 || name[n] != '.')
		return NULL;
	name = take_number(name + n + 1, &out->epoch);
	if (!name || *name != '.')
		return NULL;
	name = take_number(name + 1, &out->clock);
	return name && !strncmp(name, suffix, strlen(suffix))
		       ? name + strlen(suffix)
		       : NULL;
}

static int newest_first(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->epoch != y->epoch)
		return x->epoch < y->epoch ? 1 : -1;
	return x->clock < y->clock ? 1 : x->clock > y->clock ? -1 : 0;
}

/* Those of that run in folder; NULL with n 0: none, or 74 in e. */
static struct kept *list(
	const char *folder, const char *run, size_t *n, struct dl_err *e)
{
	DIR *dir = opendir(folder);
	struct kept *all = NULL, one;
	struct dirent *entry;
	size_t cap = 0;

	*n = 0;
	if (!dir) {
		dl_fail_sys(e, DL_IOERR, "%s", folder);
		return NULL;
	}
	while ((entry = readdir(dir))) {
		const char *rest = take_name(entry->d_name, run, &one);

		if (!rest || *rest)
			continue;
		if (*n == cap)
			all = dl_resize(all, cap = 2 * cap + 8, sizeof *all);
		all[(*n)++] = one;
	}
	closedir(dir);
	return all;
}

int keep_newest(const char *folder, const char *run, uint64_t epoch,
	uint64_t clock, uint64_t n, struct dl_err *e)
{
	const struct kept last = {epoch, clock};
	size_t found, i = 0;
	struct kept *all = list(folder, run, &found, e);
	int code = 0;

	if (!all)
		return e->code;
	qsort(all, found, sizeof *all, newest_first);
	while (i < found && newest_first(&all[i], &last) < 0)
		i++;
	for (i += (size_t)n; i < found; i++) {
		char *path = keep_name(folder, run, all[i].epoch, all[i].clock);

		if (unlink(path) && errno != ENOENT)
			code = dl_fail_sys(e, DL_IOERR, "%s", path);
		free(path);
	}
	free(all);
	return code;
}

void keep_clean(const char *folder, const char *run)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct kept one;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		const char *rest = take_name(entry->d_name, run, &one);

		if (rest && dl_output_is_left(rest))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}
