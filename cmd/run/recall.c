#include "cmd/run/recall.h"

#include <stdlib.h>
#include <string.h>

#include "link/spool_file.h"

int recall_needed(const struct pass *p)
{
	const struct dl_sync_saved *head = dl_store_saved(p->globals.store);

	if (p->latest.epoch > head->epoch)
		return 1;
	for (uint32_t f = 0; f < p->latest.fragments; f++)
		if (dl_version_cmp(p->latest.fragment[f].version,
			    head->fragment[f].version) > 0)
			return 1;
	return 0;
}

/* taken/NAME, as it was shown last; -1 when it is of no use. */
static int read_taken(
	const struct pass *p, const char *name, struct dl_spool_taken *v)
{
	char *path = dl_sprintf("taken/%s", name);
	struct dl_buf text = DL_BUF_INIT;
	int code =
		dl_spool_read(p->spool, path, DL_SPOOL_TEXT_MAX, &text, NULL);

	if (!code)
		code = dl_spool_taken_parse(v, text.data, text.len, NULL);
	if (!code && v->fragments != p->layout->fragments) {
		dl_spool_taken_release(v);
		code = DL_DATA;
	}
	dl_buf_free(&text);
	free(path);
	return code ? -1 : 0;
}

int recall_knows(const struct pass *p, const char *name, uint64_t instance)
{
	struct dl_spool_taken v;
	int knows;

	if (read_taken(p, name, &v))
		return 0;
	knows = v.instance == instance;
	dl_spool_taken_release(&v);
	return knows;
}

static void recall_learner(
	const struct pass *p, const char *name, struct dl_sync_saved *saved)
{
	struct dl_spool_taken v;

	if (read_taken(p, name, &v))
		return;
	for (uint32_t f = 0; f < v.fragments; f++)
		dl_sync_saved_settle(
			saved, name, v.instance, f, v.fragment[f].settled);
	dl_spool_taken_release(&v);
}

void recall(const struct pass *p, struct dl_sync_saved *saved)
{
	struct dl_spool_names names;

	if (saved->epoch < p->latest.epoch)
		saved->epoch = p->latest.epoch;
	if (saved->clock < p->latest.clock)
		saved->clock = p->latest.clock;
	if (dl_spool_list(p->spool, "taken", &names, NULL))
		return;
	for (size_t i = 0; i < names.n; i++)
		if (dl_name_ok(names.name[i], strlen(names.name[i])))
			recall_learner(p, names.name[i], saved);
	dl_spool_names_release(&names);
}
