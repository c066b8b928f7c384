#include "cmd/join/state.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/output.h"
#include "cmd/cmd.h"
#include "cmd/fetch/newcomer.h"

enum { LAYOUT, STATE, NOTE, FILES };

static const char *const names[FILES] = {
	"layout.tsv", "state.safetensors", "join.json"};

struct folder {
	const char *path;
	struct dl_output file[FILES];
};

static int open_file(struct folder *f, int which, struct dl_err *e)
{
	char *path = dl_sprintf("%s/%s", f->path, names[which]);
	int code = dl_output_open(&f->file[which], path, e);

	free(path);
	return code;
}

static int create(void *ctx, uint64_t bytes, struct dl_err *e)
{
	struct folder *f = ctx;
	struct statvfs v;
	char size[DL_HUMAN];

	dl_output_abort(&f->file[STATE]);
	if (open_file(f, STATE, e))
		return -1;
	if (!fstatvfs(f->file[STATE].fd, &v) &&
		v.f_bavail >= bytes / v.f_frsize + 1)
		return f->file[STATE].fd;
	dl_fail(e, DL_CANTCREAT, "%s: has no room for %s", f->path,
		dl_human_size(size, bytes));
	return -1;
}

static int write_file(struct folder *f, int which, const struct dl_buf *text,
	struct dl_err *e)
{
	int code = open_file(f, which, e);

	return code ? code
		    : dl_output_write(
			      &f->file[which], text->data, text->len, e);
}

static void describe(const struct newcomer *n, struct dl_buf *out)
{
	dl_buf_str(out, "{\"format\":1,\"run\":");
	dl_json_quote(out, n->run, strlen(n->run));
	dl_buf_printf(
		out, ",\"clock\":%" PRIu64 ",\"donor\":", n->intake.clock);
	dl_json_quote(out, n->from, strlen(n->from));
	dl_buf_str(out, ",\"versions\":[");
	for (uint32_t p = 0; p < n->layout.fragments; p++)
		dl_buf_printf(out, "%s\"%" PRIu64 ".%" PRIu64 "\"",
			p ? "," : "", n->intake.version[p].epoch,
			n->intake.version[p].number);
	dl_buf_str(out, "]}\n");
}

static int keep(struct folder *f, const struct newcomer *n, struct dl_err *e)
{
	struct dl_buf layout = DL_BUF_INIT, note = DL_BUF_INIT;
	int code;

	dl_layout_write(&n->layout, &layout);
	describe(n, &note);
	code = write_file(f, LAYOUT, &layout, e);
	if (!code)
		code = write_file(f, NOTE, &note, e);
	if (!code)
		code = dl_output_commit_all(f->file, FILES, e);
	dl_buf_free(&layout);
	dl_buf_free(&note);
	return code;
}

static int take(struct newcomer *n, struct dl_loop *loop, struct dl_err *e)
{
	int code = 0;

	while (!code) {
		newcomer_work(n, dl_now());
		if (n->result != NEWCOMER_BUSY)
			break;
		code = dl_loop_once(loop, newcomer_wake(n), e);
	}
	if (code || n->result == NEWCOMER_STATE)
		return code;
	if (!n->why.code)
		return dl_fail(e, DL_TEMPFAIL,
			"no learner of run %s gives "
			"its state",
			n->run);
	*e = n->why;
	return e->code;
}

static int fill(struct folder *f, const struct newcomer_config *c,
	struct dl_loop *loop, struct dl_err *e)
{
	struct newcomer n;
	int code = newcomer_begin(&n, c, e);

	if (!code)
		code = take(&n, loop, e);
	if (!code)
		code = keep(f, &n, e);
	newcomer_release(&n);
	for (int i = 0; i < FILES; i++)
		dl_output_abort(&f->file[i]);
	return code;
}

/* What was not finished before, by one that was killed. */
static void clean(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		for (int i = 0; i < FILES; i++) {
			size_t n = strlen(names[i]);

			if (!strncmp(entry->d_name, names[i], n) &&
				dl_output_is_left(entry->d_name + n))
				unlinkat(dirfd(dir), entry->d_name, 0);
		}
	if (dir)
		closedir(dir);
}

int join_state(const struct dl_address *syncer, enum dl_insecure allowed,
	const struct dl_key *key, const char *folder, struct dl_err *e)
{
	struct dl_loop loop = DL_LOOP_INIT;
	struct folder f = {
		folder, {DL_OUTPUT_INIT, DL_OUTPUT_INIT, DL_OUTPUT_INIT}};
	struct newcomer_config c = {.loop = &loop,
		.syncer = syncer,
		.insecure = allowed,
		.key = key,
		.run = "",
		.name = "",
		.create = create,
		.ctx = &f};
	struct dl_output_folder made;
	int code = dl_output_folder_open(&made, folder, e);

	if (code)
		return code;
	clean(folder);
	code = fill(&f, &c, &loop, e);
	dl_output_folder_close(&made);
	dl_loop_release(&loop);
	return code;
}
