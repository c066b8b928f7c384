#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/dl-sync.h"
#include "cmd/sync/from.h"
#include "state/checkpoint.h"

/* A store that is written meanwhile is looked at again. */
enum { TRIES = 5 };

static int load(struct dl_store *s, uint32_t p, float *values,
	struct dl_checkpoint_info *info, struct dl_err *e)
{
	size_t size = dl_store_layout(s)->fragment[p].elements * sizeof(float);
	int code = dl_store_load(s, p, values, NULL, e);

	if (!code)
		code = dl_store_load(s, p, NULL, values, e);
	info->bytes += 2 * size;
	if (!code)
		code = dl_store_load_error(s, p, values, e);
	if (code == DL_NO)
		return 0;
	info->bytes += size;
	return code;
}

static int load_all(
	struct dl_store *s, struct dl_checkpoint_info *info, struct dl_err *e)
{
	const struct dl_layout *l = dl_store_layout(s);
	const struct dl_sync_saved *saved = dl_store_saved(s);
	uint64_t most = 1;
	float *values;
	int code = 0;

	for (uint32_t p = 0; p < l->fragments; p++)
		if (l->fragment[p].elements > most)
			most = l->fragment[p].elements;
	*info = (struct dl_checkpoint_info){
		.run = *dl_store_run(s),
		.epoch = saved->epoch,
		.clock = saved->clock,
		.fragments = l->fragments,
	};
	values = dl_big_alloc(most * sizeof *values);
	for (uint32_t p = 0; !code && p < l->fragments; p++)
		code = load(s, p, values, info, e);
	dl_big_free(values, most * sizeof *values);
	return code;
}

static int check_store(
	const char *path, struct dl_checkpoint_info *info, struct dl_err *e)
{
	struct dl_store *s;
	int code = DL_TEMPFAIL;

	for (int i = 0; i < TRIES && code == DL_TEMPFAIL; i++) {
		code = dl_store_open(&s, path, DL_STORE_LOOK, e);
		if (!code)
			code = load_all(s, info, e);
		dl_store_close(s);
	}
	return code;
}

static int report(const char *path, const struct dl_checkpoint_info *info,
	int code, const struct dl_err *e)
{
	if (code)
		return cmd_fail(e);
	printf("%s: run %s, epoch %llu, clock %llu, %u fragments, %llu "
	       "bytes\n",
		path, info->run.name, (unsigned long long)info->epoch,
		(unsigned long long)info->clock, info->fragments,
		(unsigned long long)info->bytes);
	return 0;
}

/* Damage is the worst that there is to tell. */
static int worse(int worst, int code)
{
	return code == DL_DATA || !worst ? code : worst;
}

static int check_checkpoints(const char *folder)
{
	struct dl_checkpoint_info info;
	struct dl_err e;
	char **path;
	size_t n;
	int worst = sync_list_checkpoints(folder, &path, &n, &e);

	if (worst)
		cmd_fail(&e);
	for (size_t i = 0; i < n; i++) {
		int code = sync_refuse_other(path[i], &e);

		if (!code)
			code = dl_checkpoint_check(path[i], &info, &e);
		worst = worse(worst, report(path[i], &info, code, &e));
		free(path[i]);
	}
	free(path);
	return worst;
}

static int has_head(const char *folder)
{
	char *head = dl_sprintf("%s/HEAD", folder);
	int has = !access(head, F_OK);

	free(head);
	return has;
}

static int check(const char *path)
{
	struct dl_checkpoint_info info;
	struct stat st;
	struct dl_err e;
	int folder = !stat(path, &st) && S_ISDIR(st.st_mode), code;

	if (folder && !has_head(path))
		return check_checkpoints(path);
	code = folder ? check_store(path, &info, &e)
		      : dl_checkpoint_check(path, &info, &e);
	return report(path, &info, code, &e);
}

int sync_check(int argc, char **argv)
{
	static const struct option longs[] = {CMD_LONG, {NULL, 0, NULL, 0}};
	int opt, code, worst = 0;

	while ((opt = getopt_long(argc, argv, "+" CMD_SHORT, longs, NULL)) !=
		-1)
		cmd_common_option(opt);
	if (optind == argc)
		cmd_usage("check: a checkpoint, a folder of them, or a store?");
	for (int i = optind; i < argc; i++)
		worst = worse(worst, check(argv[i]));
	code = cmd_flush();
	return worst ? worst : code;
}
