#include "cmd/sync/from.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/sync/start.h"
#include "state/checkpoint.h"

struct candidate {
	char *path;
	struct dl_checkpoint_info info;
};

struct candidates {
	struct candidate *item;
	size_t n;
};

static int refuse_run(const struct sync_options *o, const struct candidate *c,
	struct dl_err *e)
{
	if (o->run && strcmp(o->run, c->info.run.name) != 0)
		return dl_fail(e, DL_DATA, "%s: of run %s, not %s", c->path,
			c->info.run.name, o->run);
	return 0;
}

int sync_refuse_other(const char *path, struct dl_err *e)
{
	struct stat st;

	if (stat(path, &st))
		return dl_fail_sys(e, DL_NOINPUT, "%s", path);
	return S_ISREG(st.st_mode)
		       ? 0
		       : dl_fail(e, DL_DATA, "%s: not a file", path);
}

static int look_at(struct candidates *list, char *path,
	const struct sync_options *o, struct dl_err *e)
{
	struct candidate c = {.path = path};
	int code = sync_refuse_other(path, e);

	if (!code)
		code = dl_checkpoint_peek(path, &c.info, e);
	if (!code)
		code = refuse_run(o, &c, e);
	if (code) {
		free(path);
		return code;
	}
	list->item = dl_resize(list->item, list->n + 1, sizeof c);
	list->item[list->n++] = c;
	return 0;
}

static int is_named_so(const struct dirent *entry)
{
	static const char end[] = ".tar.zst";
	size_t n = strlen(entry->d_name);

	return *entry->d_name != '.' && n > strlen(end) &&
	       !strcmp(entry->d_name + n - strlen(end), end);
}

int sync_list_checkpoints(
	const char *folder, char ***path, size_t *n, struct dl_err *e)
{
	struct dirent **entry;
	int found = scandir(folder, &entry, is_named_so, alphasort);

	*n = 0;
	*path = NULL;
	if (found < 0)
		return dl_fail_sys(e, DL_NOINPUT, "%s", folder);
	*path = dl_alloc_array((size_t)found, sizeof **path);
	for (int i = 0; i < found; i++) {
		(*path)[(*n)++] = dl_sprintf("%s/%s", folder, entry[i]->d_name);
		free(entry[i]);
	}
	free(entry);
	return found ? 0
		     : dl_fail(e, DL_NOINPUT,
			       "%s: no checkpoint (*.tar.zst) in it", folder);
}

static int look_into(struct candidates *list, const char *folder,
	const struct sync_options *o, struct dl_err *e)
{
	char **path;
	size_t n;
	int code = sync_list_checkpoints(folder, &path, &n, e);

	for (size_t i = 0; i < n; i++) {
		struct dl_err why;

		if (look_at(list, path[i], o, &why))
			cmd_warn("%s: passed over", why.text);
	}
	free(path);
	return code;
}

static int later_first(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

/* By epoch and clock, which never fall; when it was made is what a wall clock
 * said, and somebody may have set that. */
static int newest_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int order = later_first(x->info.epoch, y->info.epoch);

	if (!order)
		order = later_first(x->info.clock, y->info.clock);
	if (!order)
		order = later_first(
			(uint64_t)x->info.made, (uint64_t)y->info.made);
	return order ? order : strcmp(x->path, y->path);
}

/* Of several runs none is the newest. */
static int refuse_several(
	const struct candidates *list, const char *from, struct dl_err *e)
{
	for (size_t i = 1; i < list->n; i++)
		if (strcmp(list->item[i].info.run.name,
			    list->item[0].info.run.name) != 0)
			return dl_fail(e, DL_USAGE,
				"%s: has runs %s and %s: which --run?", from,
				list->item[0].info.run.name,
				list->item[i].info.run.name);
	return 0;
}

static int unpack(const struct candidate *c, const struct sync_options *o,
	struct dl_err *e)
{
	const struct dl_checkpoint_info *i = &c->info;
	int64_t now = dl_wall();
	char ago[DL_HUMAN];
	int code = sync_check_run(o, &i->run, e);

	if (!code)
		code = dl_checkpoint_unpack(c->path, o->store, now, e);
	if (!code && now < i->made)
		cmd_warn("%s: made %s after now, by this machine's clock: the "
			 "epoch rises by no more than 1",
			c->path, dl_human_duration(ago, i->made - now));
	if (!code)
		cmd_note("%s: run %s, epoch %llu, clock %llu, made %s ago, in "
			 "%s now",
			c->path, i->run.name, (unsigned long long)i->epoch,
			(unsigned long long)i->clock,
			dl_human_duration(
				ago, now > i->made ? now - i->made : 0),
			o->store);
	return code;
}

static int unpack_newest(struct candidates *list, const char *from,
	const struct sync_options *o, struct dl_err *e)
{
	int code = refuse_several(list, from, e);

	if (code)
		return code;
	if (list->n)
		qsort(list->item, list->n, sizeof *list->item, newest_first);
	for (size_t i = 0; i < list->n; i++) {
		code = unpack(&list->item[i], o, e);
		if (code != DL_DATA && code != DL_NOINPUT)
			return code;
		cmd_warn("%s: passed over", e->text);
	}
	return dl_fail(e, DL_DATA, "%s: no sound checkpoint in it", from);
}

static int refuse_second(const char *store, struct dl_err *e)
{
	struct dl_store *s;
	struct dl_err why;
	int code = dl_store_open(&s, store, DL_STORE_LOOK, &why);

	dl_store_close(s);
	return code == DL_NOINPUT
		       ? 0
		       : dl_fail(e, DL_CANTCREAT,
				 "%s: there is a store already", store);
}

int sync_from(const char *from, const struct sync_options *o, struct dl_err *e)
{
	struct candidates list = {.n = 0};
	struct stat st;
	int code = refuse_second(o->store, e);

	if (!code && !stat(from, &st) && S_ISDIR(st.st_mode)) {
		code = look_into(&list, from, o, e);
		if (!code)
			code = unpack_newest(&list, from, o, e);
	} else if (!code) {
		code = look_at(&list, dl_strdup(from), o, e);
		if (!code)
			code = unpack(&list.item[0], o, e);
	}
	for (size_t i = 0; i < list.n; i++)
		free(list.item[i].path);
	free(list.item);
	return code;
}
