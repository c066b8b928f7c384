#include "cmd/run/collect.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "link/spool_file.h"

/* Is name in latest, as one of the versions themselves or of the updates that
 * made them? */
static int is_named(const struct pass *p, const char *name)
{
	struct dl_version v;
	uint32_t f;

	return dl_spool_version_parse(name, &f, &v) ||
	       (f < p->latest.fragments &&
		       !dl_version_cmp(v, p->latest.fragment[f].version));
}

static int is_link(const struct pass *p, const char *path)
{
	struct stat st;

	return !fstatat(p->spool, path, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISLNK(st.st_mode);
}

static int is_never(const struct pass *p, const char *name)
{
	(void)p;
	(void)name;
	return 0;
}

/* What is no file that somebody may read is just removed. */
static int take_away(const struct pass *p, const char *path)
{
	int gone = 0;

	return (!dl_spool_collect(p->spool, path, &gone, NULL) && gone) ||
	       (is_link(p, path) && !dl_spool_remove(p->spool, path, NULL));
}

/* One that is still being written changes. */
static void collect_one(struct pass *p, const char *path, int64_t keep)
{
	char mark[SEEN_MARK];
	struct stat st;

	if (fstatat(p->spool, path, &st, AT_SYMLINK_NOFOLLOW))
		return;
	snprintf(mark, sizeof mark, "%lld.%09ld", (long long)st.st_mtim.tv_sec,
		st.st_mtim.tv_nsec);
	if (p->now - seen_since(&p->seen, path, mark, p->now) >= keep &&
		take_away(p, path))
		p->report.collected++;
}

static void collect_from(struct pass *p, const char *folder,
	int (*stays)(const struct pass *p, const char *name), int64_t keep)
{
	struct dl_spool_names names;

	if (dl_spool_list(p->spool, folder, &names, NULL))
		return;
	for (size_t i = 0; i < names.n; i++) {
		char *path = dl_sprintf("%s/%s", folder, names.name[i]);

		if (!stays(p, names.name[i]))
			collect_one(p, path, keep);
		free(path);
	}
	dl_spool_names_release(&names);
}

void collect(struct pass *p)
{
	const struct run_options *o = p->options;

	collect_from(p, "global", is_named, o->keep_ns);
	collect_from(p, "update", is_named, o->keep_ns);
	collect_from(p, "refused", is_never, o->stale_ns);
	collect_from(p, "tmp", is_never, o->stale_ns);
}
