#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "base/file.h"
#include "base/mem.h"

enum { CHUNK = 1 << 17 };

/*
 * Temporary names that a signal or exit must remove. The handler walks the
 * list, so that one is whole before it is in it and is out of it before it is
 * freed.
 */
struct dl_output_temp {
	struct dl_output_temp *volatile next;
	char path[];
};

static struct dl_output_temp *volatile temps;

static struct dl_output_temp *track(const char *path)
{
	static unsigned serial;
	size_t size = strlen(path) + 48;
	struct dl_output_temp *t = dl_alloc(sizeof *t + size);

	snprintf(
		t->path, size, "%s.tmp.%ld.%u", path, (long)getpid(), serial++);
	t->next = temps;
	atomic_signal_fence(memory_order_seq_cst);
	temps = t;
	return t;
}

static void untrack(struct dl_output_temp *t)
{
	struct dl_output_temp *volatile *at = &temps;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	atomic_signal_fence(memory_order_seq_cst);
	free(t);
}

static void remove_tracked(void)
{
	for (const struct dl_output_temp *t = temps; t; t = t->next)
		unlink(t->path);
}

static void die_cleanly(int sig)
{
	remove_tracked();
	signal(sig, SIG_DFL);
	raise(sig);
}

void dl_output_on_signal(void)
{
	static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
	struct sigaction sa;

	memset(&sa, 0, sizeof sa);
	sa.sa_handler = die_cleanly;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof sigs / sizeof *sigs; i++) {
		struct sigaction old;

		/* What the parent told us to ignore (nohup) stays ignored. */
		if (!sigaction(sigs[i], NULL, &old) &&
			old.sa_handler != SIG_IGN)
			sigaction(sigs[i], &sa, NULL);
	}
	atexit(remove_tracked);
}

struct dl_output_zstd {
	ZSTD_CCtx *ctx;
	unsigned char block[CHUNK]; /* compressed, to be written */
};

void dl_output_compress(struct dl_output *o, int level)
{
	if (!level)
		return;
	o->zstd = dl_alloc(sizeof *o->zstd);
	o->zstd->ctx = ZSTD_createCCtx();
	/* Without a context these say so, and so will the first write. */
	ZSTD_CCtx_setParameter(o->zstd->ctx, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(o->zstd->ctx, ZSTD_c_checksumFlag, 1);
}

static void release(struct dl_output *o)
{
	if (o->zstd)
		ZSTD_freeCCtx(o->zstd->ctx);
	free(o->zstd);
	free(o->path);
	*o = (struct dl_output)DL_OUTPUT_INIT;
}

int dl_output_open(struct dl_output *o, const char *path, struct dl_err *e)
{
	*o = (struct dl_output)DL_OUTPUT_INIT;
	if (!strcmp(path, "-")) {
		o->fd = STDOUT_FILENO;
		return 0;
	}
	o->path = dl_strdup(path);
	o->temp = track(path);
	o->fd = open(
		o->temp->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (o->fd >= 0)
		return 0;
	untrack(o->temp);
	release(o);
	return dl_fail_sys(e, DL_CANTCREAT, "%s", path);
}

int dl_output_check(const char *path, struct dl_err *e)
{
	struct dl_output o;
	struct stat st;
	int code;

	if (!strcmp(path, "-"))
		return 0;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return dl_fail(e, DL_CANTCREAT, "%s: is a folder", path);
	code = dl_output_open(&o, path, e);
	if (!code)
		dl_output_abort(&o);
	return code;
}

static int fail(const struct dl_output *o, struct dl_err *e)
{
	return dl_fail_sys(
		e, DL_IOERR, "%s", o->path ? o->path : "standard output");
}

/* Compresses n bytes and writes what comes of it; all that is left, to end. */
static int deflate(struct dl_output *o, const void *p, size_t n,
	ZSTD_EndDirective end, struct dl_err *e)
{
	struct dl_output_zstd *z = o->zstd;
	ZSTD_inBuffer in = {p, n, 0};
	size_t left;

	do {
		ZSTD_outBuffer out = {z->block, sizeof z->block, 0};

		if (!z->ctx)
			return dl_fail(e, DL_OSERR, "out of memory");
		left = ZSTD_compressStream2(z->ctx, &out, &in, end);
		if (ZSTD_isError(left))
			return dl_fail(e, DL_OSERR, "zstd: %s",
				ZSTD_getErrorName(left));
		if (dl_write_full(o->fd, z->block, out.pos))
			return fail(o, e);
	} while (end == ZSTD_e_end ? left : in.pos < in.size);
	return 0;
}

int dl_output_write(
	struct dl_output *o, const void *p, size_t n, struct dl_err *e)
{
	if (o->zstd)
		return deflate(o, p, n, ZSTD_e_continue, e);
	return dl_write_full(o->fd, p, n) ? fail(o, e) : 0;
}

void dl_output_abort(struct dl_output *o)
{
	if (o->temp) {
		if (o->fd >= 0)
			close(o->fd);
		unlink(o->temp->path);
		untrack(o->temp);
	}
	release(o);
}

/* Puts all of it on the disk, still under its temporary name. */
static int settle(struct dl_output *o, struct dl_err *e)
{
	int code = o->zstd ? deflate(o, NULL, 0, ZSTD_e_end, e) : 0, rc, fd;

	if (code || !o->temp)
		return code;
	fd = o->fd;
	o->fd = -1;
	rc = fsync(fd);
	return close(fd) || rc ? fail(o, e) : 0;
}

static int publish(struct dl_output *o, struct dl_err *e)
{
	if (!o->temp)
		return 0;
	if (rename(o->temp->path, o->path))
		return fail(o, e);
	untrack(o->temp);
	o->temp = NULL;
	return 0;
}

static int sync_folder_of(const struct dl_output *o, struct dl_err *e)
{
	return o->path ? dl_fsync_parent(o->path, e) : 0;
}

/* The last is named when the names of all others are safe. */
static int publish_all(struct dl_output *o, size_t n, struct dl_err *e)
{
	int code = 0;

	for (size_t i = 0; !code && i < n; i++) {
		if (i && i == n - 1)
			code = sync_folder_of(o, e);
		if (!code)
			code = publish(&o[i], e);
	}
	return code;
}

int dl_output_commit_all(struct dl_output *o, size_t n, struct dl_err *e)
{
	int code = 0;

	for (size_t i = 0; !code && i < n; i++)
		code = settle(&o[i], e);
	if (!code)
		code = publish_all(o, n, e);
	for (size_t i = 0; code && i < n; i++)
		if (o[i].path && !o[i].temp)
			unlink(o[i].path);
	if (!code)
		code = sync_folder_of(&o[n - 1], e);
	for (size_t i = 0; i < n; i++)
		dl_output_abort(&o[i]);
	return code;
}

int dl_output_commit(struct dl_output *o, struct dl_err *e)
{
	return dl_output_commit_all(o, 1, e);
}
