#include "cmd/run/resume.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/run/recall.h"
#include "cmd/sync/start.h"
#include "state/replay.h"

enum { TAPE_MAX = 16 << 20 };

static char *tape_path(const struct pass *p)
{
	return dl_sprintf("%s/tape", p->options->sync.store);
}

static int replay(
	struct pass *p, const char *path, struct dl_replay *v, struct dl_err *e)
{
	const struct dl_replay_watcher w = book_watcher(&p->book);
	struct dl_tape_reader r;
	struct dl_err why;
	int fd, code = dl_open_read(path, &fd, e);

	*v = (struct dl_replay){0};
	if (code)
		return code;
	dl_tape_reader_init(&r, fd, path);
	code = dl_replay(v, &r, &w, &why);
	dl_tape_reader_release(&r);
	close(fd);
	return code ? dl_fail(e, code, "%s", why.text) : 0;
}

/* What a start says but for the state that it goes on from. */
static void describe(struct dl_buf *out, const struct dl_tape_start *s)
{
	struct dl_tape_start bare = *s;

	bare.restored = 0;
	dl_tape_write_start(out, &bare, 0, 0);
}

static int same_start(
	const struct dl_tape_start *a, const struct dl_tape_start *b)
{
	struct dl_buf x = DL_BUF_INIT, y = DL_BUF_INIT;
	int same;

	describe(&x, a);
	describe(&y, b);
	same = x.len == y.len && !memcmp(x.data, y.data, x.len);
	dl_buf_free(&x);
	dl_buf_free(&y);
	return same;
}

static struct dl_version next_version(const struct pass *p, uint32_t f)
{
	struct dl_version v = dl_sync_version(p->core, f);

	v.number++;
	return v;
}

/* HEAD is where the core is, or one merge ahead that the core has in hand. */
static int agrees(const struct pass *p, uint32_t f)
{
	const struct dl_sync_saved *head = dl_store_saved(p->globals.store);
	struct dl_version v = head->fragment[f].version;

	return !dl_version_cmp(v, dl_sync_version(p->core, f)) ||
	       (book_merge(&p->book, f) &&
		       !dl_version_cmp(v, next_version(p, f)));
}

/* The reason not to go on with the core that the tape made, or NULL. */
static const char *disagreement(const struct pass *p, const struct dl_replay *v,
	const struct dl_tape_start *start, const char *path)
{
	const struct dl_sync_saved *head = dl_store_saved(p->globals.store);
	struct stat st;

	if (!same_start(&v->start, start))
		return "its options are others now";
	if (dl_sync_epoch(p->core) != head->epoch)
		return "its tape is of another epoch";
	for (uint32_t f = 0; f < p->layout->fragments; f++)
		if (!agrees(p, f))
			return "its tape leads elsewhere";
	if (recall_needed(p))
		return "its store is older than what the spool shows";
	if (!stat(path, &st) && st.st_size > TAPE_MAX)
		return "its tape is long";
	return NULL;
}

/* Merges that were committed, but the tape does not say so. */
static void tell_merged(struct pass *p)
{
	const struct dl_sync_saved *head = dl_store_saved(p->globals.store);

	for (uint32_t f = 0; f < p->layout->fragments; f++) {
		struct dl_sync_event ev = {.kind = DL_EV_MERGED,
			.fragment = f,
			.version = head->fragment[f].version,
			.loss = NAN};

		if (dl_version_cmp(ev.version, dl_sync_version(p->core, f)))
			pass_event(p, &ev);
	}
}

/* The old tape is kept for whoever wants to look, once an epoch. */
static int set_apart(const struct pass *p, const char *path, uint64_t epoch,
	struct dl_err *e)
{
	char *to = dl_sprintf("%s.%" PRIu64, path, epoch);
	int rc = access(to, F_OK) ? rename(path, to) : unlink(path);

	if (rc && errno != ENOENT)
		rc = dl_fail_sys(e, DL_IOERR, "%s", path);
	else
		rc = dl_fsync_folder(p->options->sync.store, e);
	free(to);
	return rc;
}

/* Begins a tape with start, and makes its core. */
static int begin(struct pass *p, const char *path, struct dl_tape_start *start,
	struct dl_err *e)
{
	int code = dl_tape_open(&p->tape, path, start, p->now, p->now, e);

	if (!code)
		code = dl_tape_sync(p->tape, e);
	book_begin(&p->book, p->layout->fragments);
	dl_trail_init(&p->trail);
	p->core = start->restored
			  ? dl_sync_restore(&start->config, &start->saved)
			  : dl_sync_new(&start->config);
	return code;
}

/* Makes the risen epoch of a restored core durable. */
static int rise(struct pass *p, struct dl_err *e)
{
	struct dl_sync_saved risen;
	int code;

	dl_sync_save(p->core, UINT32_MAX, &risen);
	code = dl_store_commit_saved(p->globals.store, &risen, e);
	dl_sync_saved_release(&risen);
	return code;
}

static int restore(struct pass *p, const char *path,
	struct dl_tape_start *start, struct dl_err *e)
{
	int code;

	start->restored = 1;
	dl_sync_saved_copy(dl_store_saved(p->globals.store), &start->saved);
	recall(p, &start->saved);
	code = set_apart(p, path, start->saved.epoch, e);
	if (!code)
		code = begin(p, path, start, e);
	if (!code)
		code = rise(p, e);
	dl_sync_saved_release(&start->saved);
	if (!code)
		cmd_note("run %s goes on in epoch %" PRIu64, p->run->name,
			dl_sync_epoch(p->core));
	return code;
}

/* A pass that ended between the tape's start and HEAD: HEAD is still what the
 * start goes on from. */
static int never_rose(const struct pass *p, const struct dl_replay *v)
{
	const struct dl_sync_saved *head = dl_store_saved(p->globals.store);
	const struct dl_sync_saved *from = &v->start.saved;

	if (!v->start.restored || v->events || head->epoch > from->epoch ||
		head->fragments != from->fragments)
		return 0;
	for (uint32_t f = 0; f < head->fragments; f++)
		if (dl_version_cmp(head->fragment[f].version,
			    from->fragment[f].version))
			return 0;
	return 1;
}

/* The core that the tape made, as long as it fits; *why when it does not. */
static int go_on(struct pass *p, const char *path,
	const struct dl_tape_start *start, char *why, size_t size,
	struct dl_err *e)
{
	const char *reason;
	struct dl_replay v;
	struct dl_err bad;
	int code = replay(p, path, &v, &bad);

	*why = '\0';
	if (!code) {
		p->core = v.core;
		p->trail = v.trail;
		v.core = NULL;
		if (v.now > p->now)
			p->now = v.now;
		if (never_rose(p, &v))
			code = rise(p, e);
		reason = code ? NULL : disagreement(p, &v, start, path);
		if (reason)
			snprintf(why, size, "%s", reason);
	} else if (code == DL_NO || code == DL_NOINPUT || code == DL_DATA) {
		snprintf(why, size, "%s", bad.text);
		code = 0;
	} else {
		code = dl_fail(e, code, "%s", bad.text);
	}
	dl_replay_release(&v);
	return code;
}

int resume(struct pass *p, struct dl_err *e)
{
	char *path = tape_path(p), why[sizeof e->text] = "";
	struct dl_tape_start start;
	int code = 0;

	sync_start(&start, &p->options->sync, p->globals.store);
	if (p->fresh) {
		code = begin(p, path, &start, e);
	} else {
		code = go_on(p, path, &start, why, sizeof why, e);
		if (!code && *why) {
			cmd_note("%s: %s", p->options->spool, why);
			dl_sync_free(p->core);
			p->core = NULL;
			code = restore(p, path, &start, e);
		} else if (!code) {
			code = dl_tape_continue(
				&p->tape, path, p->layout->fragments, e);
			if (!code)
				tell_merged(p);
		}
	}
	free(path);
	return code;
}

void resume_forget(struct pass *p)
{
	char *path = tape_path(p);

	set_apart(p, path, dl_sync_epoch(p->core), NULL);
	free(path);
}
