#include "cmd/sync/start.h"

#include <string.h>

#include "state/head.h"

int sync_check_run(const struct sync_options *o, const struct dl_store_run *run,
	struct dl_err *e)
{
	if (o->h && o->h != run->h)
		return dl_fail(e, DL_USAGE, "%s: H is %llu in this run",
			o->store, (unsigned long long)run->h);
	if (o->run && strcmp(o->run, run->name) != 0)
		return dl_fail(
			e, DL_USAGE, "%s: this is run %s", o->store, run->name);
	return 0;
}

void sync_start(struct dl_tape_start *start, const struct sync_options *o,
	const struct dl_store *store)
{
	const struct dl_store_run *run = dl_store_run(store);
	const struct dl_layout *layout = dl_store_layout(store);

	*start = (struct dl_tape_start){.config = o->config};
	strcpy(start->run, run->name);
	strcpy(start->layout, layout->hash);
	start->config.schedule.fragments = layout->fragments;
	start->config.schedule.h = run->h;
	/* In lock-step every due step has its round. */
	if (!o->min_h_given)
		start->config.min_h = o->wait ? 0 : run->h / 2;
}

void sync_note(struct dl_tape *tape, const struct dl_sync_event *ev,
	const struct globals *g, const struct dl_trail *trail, int64_t wall)
{
	const struct dl_head_files *files =
		dl_store_files(g->store, ev->fragment);
	struct dl_tape_made made;

	/* What is not committed yet has no files. */
	if (ev->kind != DL_EV_MERGED ||
		dl_version_cmp(files->made, ev->version) != 0) {
		dl_tape_event(tape, ev, NULL, wall);
		return;
	}
	strcpy(made.values, files->hash[DL_STORE_GLOBAL]);
	strcpy(made.momentum, files->hash[DL_STORE_MOMENTUM]);
	dl_trail_hex(trail, made.trail);
	made.alike = g->alike[ev->fragment];
	dl_tape_event(tape, ev, &made, wall);
}
