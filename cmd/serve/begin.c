#include "cmd/serve/begin.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/serve/commit.h"
#include "cmd/serve/hashing.h"
#include "cmd/serve/rights.h"
#include "cmd/sync/create.h"
#include "cmd/sync/from.h"
#include "cmd/sync/start.h"
#include "state/archive.h"

static int begin_listening(struct server *s, struct dl_err *e)
{
	const struct serve_options *o = s->options;
	char address[DL_ADDRESS_MAX];

	if (s->listener[0] >= 0)
		return 0;
	for (size_t i = 0; i < o->listens; i++) {
		s->address[i] = o->listen[i];
		if (dl_address_listen(
			    &s->address[i], o->insecure, &s->listener[i], e))
			return e->code;
		cmd_note("listens at %s",
			dl_address_show(address, &s->address[i]));
	}
	return 0;
}

/* Makes the store and opens it: one that nobody could reach is not left
 * behind. */
static int make_store(struct server *s, struct dl_err *e)
{
	const struct serve_options *o = s->options;
	int code = begin_listening(s, e);

	if (!code)
		code = o->from ? sync_from(o->from, &o->sync, e)
			       : sync_create(&o->sync, e);
	return code ? code : globals_open(&s->globals, &o->sync, e);
}

static int open_store(struct server *s, int *fresh, struct dl_err *e)
{
	const struct serve_options *o = s->options;
	int code = DL_NOINPUT;

	if (!o->from)
		code = globals_open(&s->globals, &o->sync, e);
	*fresh = code == DL_NOINPUT && !o->from;
	return code == DL_NOINPUT ? make_store(s, e) : code;
}

static int make_core(
	struct server *s, struct dl_tape_start *start, struct dl_err *e)
{
	struct dl_store *store = s->globals.store;
	struct dl_sync_saved risen;
	int code;

	dl_trail_init(&s->trail);
	if (!start->restored) {
		s->core = dl_sync_new(&start->config);
		return 0;
	}
	s->core = dl_sync_restore(&start->config, &start->saved);
	dl_sync_save(s->core, UINT32_MAX, &risen);
	code = dl_store_commit_saved(store, &risen, e);
	cmd_note("run %s goes on: epoch %llu, clock %llu", s->run->name,
		(unsigned long long)risen.epoch,
		(unsigned long long)risen.clock);
	dl_sync_saved_release(&risen);
	return code;
}

/* The tape begins with what the core was made of. */
static int begin_core(struct server *s, int fresh, struct dl_err *e)
{
	const struct serve_options *o = s->options;
	struct dl_store *store = s->globals.store;
	struct dl_tape_start start;
	int code;

	sync_start(&start, &o->sync, store);
	start.restored = !fresh;
	if (!fresh)
		start.saved = *dl_store_saved(store);
	/* The tape first: afterwards the saved state is the risen epoch's. */
	code = o->tape ? dl_tape_open(&s->tape, o->tape, &start, dl_wall(),
				 dl_now(), e)
		       : 0;
	if (!code)
		code = make_core(s, &start, e);
	dl_stat_init(&s->stat);
	if (!code)
		dl_stat_begin(&s->stat, s->run->name, &start.config, s->core,
			dl_now(), dl_wall());
	return code;
}

static int check_folder(const char *folder, struct dl_err *e)
{
	char *path = dl_sprintf("%s/file", folder);
	int code = dl_make_folder(folder, e);

	if (!code)
		code = dl_output_check(path, e);
	free(path);
	return code;
}

/* What cannot be written is known before a store is made. */
static int check_outputs(const struct serve_options *o, struct dl_err *e)
{
	int code = o->sync.output ? dl_output_check(o->sync.output, e) : 0;

	if (!code && o->tape && access(o->tape, F_OK))
		code = dl_output_check(o->tape, e);
	if (!code && o->record)
		code = check_folder(o->record, e);
	if (!code && o->checkpoint.folder)
		code = dl_archive_load(e);
	if (!code && o->checkpoint.folder)
		code = check_folder(o->checkpoint.folder, e);
	return code;
}

int server_begin(struct server *s, struct dl_err *e)
{
	int fresh, code = rights_read(s, e);

	if (!code)
		code = check_outputs(s->options, e);
	if (!code)
		code = open_store(s, &fresh, e);
	if (code)
		return code;
	s->run = dl_store_run(s->globals.store);
	s->layout = s->globals.layout;
	rights_say(s);
	dl_layout_write(s->layout, &s->layout_text);
	code = sync_check_run(&s->options->sync, s->run, e);
	if (!code)
		code = commits_begin(s, e);
	if (!code)
		code = hashing_begin(s, e);
	if (!code)
		code = begin_core(s, fresh, e);
	if (!code)
		code = begin_listening(s, e);
	return code ? code : checkpoints_begin(s, e);
}

void server_end(struct server *s)
{
	struct dl_err e;

	commits_end(s);
	hashing_end(s);
	peers_free(s);
	absent_release(&s->absent);
	checkpoints_end(s->checkpoints);
	dl_errands_free(s->packer);
	dl_errands_free(s->reader);
	dl_authorized_release(&s->authorized);
	free(s->comings);
	for (size_t i = 0; i < s->options->listens; i++)
		if (s->listener[i] >= 0)
			dl_address_unlisten(&s->address[i], s->listener[i]);
	if (s->tape && dl_tape_close(s->tape, &e) && !s->code)
		s->code = cmd_fail(&e);
	dl_stat_release(&s->stat);
	figures_free(s);
	dl_sync_free(s->core);
	globals_close(&s->globals);
	dl_buf_free(&s->layout_text);
	dl_loop_release(&s->loop);
}
