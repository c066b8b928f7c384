#include "cmd/replay/from.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/replay/state.h"
#include "cmd/sync/from.h"
#include "state/checkpoint.h"

/* When an epoch has risen by so much since the checkpoint; DL_NO: never. */
static int moment(int64_t made, uint64_t risen, int64_t *at)
{
	const int64_t step = DL_SECOND / 1000;

	if (made < 0 || risen > (uint64_t)((INT64_MAX - made) / step))
		return DL_NO;
	*at = made + (int64_t)risen * step;
	return 0;
}

/* 0 when start went on from the checkpoint at path. */
static int compare(const char *path, const struct dl_tape_start *start,
	int64_t *at, struct dl_err *e)
{
	const struct dl_sync_saved *then = &start->saved;
	struct dl_checkpoint_info info;
	struct dl_sync_saved saved;
	int code = sync_refuse_other(path, e);

	if (!code)
		code = dl_checkpoint_saved(path, &info, &saved, e);
	if (code)
		return code;
	code = strcmp(info.run.name, start->run) || then->epoch < saved.epoch
		       ? DL_NO
		       : moment(info.made, then->epoch - saved.epoch, at);
	saved.epoch = then->epoch;
	if (!code && state_check(&saved, start, e))
		code = DL_NO;
	dl_sync_saved_release(&saved);
	return code;
}

static int find(const char *folder, const struct dl_tape_start *start,
	char **path, int64_t *at, struct dl_err *e)
{
	char **all;
	size_t n;
	int code = sync_list_checkpoints(folder, &all, &n, e);

	for (size_t i = 0; i < n; i++) {
		struct dl_err why;

		if (!*path && !compare(all[i], start, at, &why))
			*path = all[i];
		else
			free(all[i]);
	}
	free(all);
	return code || *path ? code : DL_NO;
}

int replay_from(const char *from, const struct dl_tape_start *start,
	char **path, int64_t *at, struct dl_err *e)
{
	struct stat st;
	int code;

	*path = NULL;
	if (!stat(from, &st) && S_ISDIR(st.st_mode))
		return find(from, start, path, at, e);
	code = compare(from, start, at, e);
	if (!code)
		*path = dl_strdup(from);
	return code;
}
