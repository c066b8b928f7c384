#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

enum { CHUNK = 1 << 17, SENT = 8 << 20 };

/*
 * Temporary names that a signal or exit must remove. The handler walks the
 * list, so that one is whole before it is in it and is out of it before it is
 * freed.
 */
struct dl_output_temp {
	struct dl_output_temp *volatile next;
	struct dl_output_temp *before;
	char path[];
};

static struct dl_output_temp *volatile temps;
static pthread_mutex_t temps_lock = PTHREAD_MUTEX_INITIALIZER;

static struct dl_output_temp *track(const char *path)
{
	size_t size = strlen(path) + 1;
	struct dl_output_temp *t = dl_alloc(sizeof *t + size);

	memcpy(t->path, path, size);
	pthread_mutex_lock(&temps_lock);
	t->next = temps;
	if (t->next)
		t->next->before = t;
	atomic_signal_fence(memory_order_seq_cst);
	temps = t;
	pthread_mutex_unlock(&temps_lock);
	return t;
}

static void untrack(struct dl_output_temp *t)
{
	pthread_mutex_lock(&temps_lock);
	if (t->before)
		t->before->next = t->next;
	else
		temps = t->next;
	if (t->next)
		t->next->before = t->before;
	atomic_signal_fence(memory_order_seq_cst);
	pthread_mutex_unlock(&temps_lock);
	free(t);
}

/* The newest first: what is in a folder, then the folder. */
static void remove_tracked(void)
{
	for (const struct dl_output_temp *t = temps; t; t = t->next)
		if (unlink(t->path))
			rmdir(t->path);
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
	/* A file that may not grow any more fails to be written, as on a full
	 * disk. */
	signal(SIGXFSZ, SIG_IGN);
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
	if (!o->zstd->ctx) /* the first write says so */
		return;
	ZSTD_CCtx_setParameter(o->zstd->ctx, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(o->zstd->ctx, ZSTD_c_checksumFlag, 1);
}

static void release_zstd(struct dl_output *o)
{
	if (o->zstd)
		ZSTD_freeCCtx(o->zstd->ctx);
	free(o->zstd);
	o->zstd = NULL;
}

static void release(struct dl_output *o)
{
	release_zstd(o);
	free(o->path);
	*o = (struct dl_output)DL_OUTPUT_INIT;
}

/* What path is; what is not there yet will be a file. */
static mode_t kind_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? S_IFREG : st.st_mode & S_IFMT;
}

static void open_temp(struct dl_output *o)
{
	static atomic_uint serial;
	char *path;

	for (;;) {
		path = dl_sprintf("%s.tmp.%ld.%u", o->path, (long)getpid(),
			atomic_fetch_add(&serial, 1));
		o->temp = track(path);
		o->fd = open(
			path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		free(path);
		if (o->fd >= 0 || errno != EEXIST)
			return;
		/* Left by a process that had this number and was killed. */
		untrack(o->temp);
	}
}

void dl_output_on(struct dl_output *o, int fd)
{
	*o = (struct dl_output)DL_OUTPUT_INIT;
	o->fd = fd;
}

int dl_output_open(struct dl_output *o, const char *path, struct dl_err *e)
{
	mode_t kind = kind_of(path);

	if (!strcmp(path, "-")) {
		dl_output_on(o, STDOUT_FILENO);
		return 0;
	}
	*o = (struct dl_output)DL_OUTPUT_INIT;
	if (kind == S_IFDIR)
		return dl_fail(e, DL_CANTCREAT, "%s: is a folder", path);
	if (!*path)
		return dl_fail(e, DL_CANTCREAT, "an empty name is no file's");
	o->path = dl_strdup(path);
	if (kind == S_IFREG)
		open_temp(o);
	else
		o->fd = open(path, O_WRONLY | O_CLOEXEC);
	if (o->fd >= 0)
		return 0;
	dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	dl_output_abort(o);
	return DL_CANTCREAT;
}

const char *dl_output_temp(const struct dl_output *o)
{
	return o->temp ? o->temp->path : NULL;
}

int dl_output_is_left(const char *end)
{
	static const char temp[] = ".tmp.", digits[] = "0123456789";
	const char *pid = end + strlen(temp), *serial;
	size_t n;

	if (strncmp(end, temp, strlen(temp)) != 0)
		return 0;
	n = strspn(pid, digits);
	if (!n || n > 9 || pid[n] != '.')
		return 0;
	serial = pid + n + 1;
	n = strspn(serial, digits);
	return n && !serial[n] && kill((pid_t)strtol(pid, NULL, 10), 0) &&
	       errno == ESRCH;
}

int dl_output_check(const char *path, struct dl_err *e)
{
	mode_t kind = kind_of(path);
	struct dl_output o;
	int code;

	if (!strcmp(path, "-"))
		return 0;
	/* To open a pipe and close it would end it. */
	if (kind != S_IFREG && kind != S_IFDIR)
		return access(path, W_OK)
			       ? dl_fail_sys(e, DL_CANTCREAT, "%s", path)
			       : 0;
	code = dl_output_open(&o, path, e);
	if (!code)
		dl_output_abort(&o);
	return code;
}

static int fail(const struct dl_output *o, struct dl_err *e)
{
	const char *place = o->path		     ? o->path
			    : o->fd == STDOUT_FILENO ? "standard output"
						     : "output";

	return dl_fail_sys(e, DL_IOERR, "%s", place);
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

/* The disk begins with what there is, so that little is left when it has to be
 * waited for. */
static void begin_sync(struct dl_output *o)
{
	if (!o->temp || o->fd < 0 || !o->unsent)
		return;
	o->unsent = 0;
#ifdef SYNC_FILE_RANGE_WRITE
	sync_file_range(o->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
#endif
}

static void wrote(struct dl_output *o, size_t n)
{
	o->unsent += n;
	if (o->unsent >= SENT)
		begin_sync(o);
}

int dl_output_write(
	struct dl_output *o, const void *p, size_t n, struct dl_err *e)
{
	if (o->zstd)
		return deflate(o, p, n, ZSTD_e_continue, e);
	if (dl_write_full(o->fd, p, n))
		return fail(o, e);
	wrote(o, n);
	return 0;
}

uint64_t dl_output_copy(struct dl_output *o, int fd, uint64_t at, uint64_t n)
{
	uint64_t done = 0;
#ifdef __linux__
	off_t from = (off_t)at;
	ssize_t k;

	while (!o->zstd && done < n) {
		size_t most = n - done < SENT ? (size_t)(n - done) : SENT;

		k = copy_file_range(fd, &from, o->fd, NULL, most, 0);
		if (k <= 0)
			break;
		done += (uint64_t)k;
		wrote(o, (size_t)k);
	}
#else
	(void)o, (void)fd, (void)at, (void)n;
#endif
	return done;
}

void dl_output_abort(struct dl_output *o)
{
	if (o->path && o->fd >= 0)
		close(o->fd);
	if (o->temp) {
		unlink(o->temp->path);
		untrack(o->temp);
	}
	release(o);
}

int dl_output_finish(struct dl_output *o, struct dl_err *e)
{
	int fd = o->fd, rc = 0;

	if (fd < 0)
		return 0;
	if (o->zstd)
		rc = deflate(o, NULL, 0, ZSTD_e_end, e);
	release_zstd(o);
	if (rc || !o->path)
		return rc;
	o->fd = -1;
	if (o->temp)
		rc = fsync(fd);
	return close(fd) || rc ? fail(o, e) : 0;
}

int dl_output_finish_all(struct dl_output *o, size_t n, struct dl_err *e)
{
	int code = 0;

	for (size_t i = 0; i < n; i++)
		begin_sync(&o[i]);
	for (size_t i = 0; !code && i < n; i++)
		code = dl_output_finish(&o[i], e);
	return code;
}

/* The last gets its name when those of all others are safe. */
static int publish(
	struct dl_output *o, size_t n, size_t *named, struct dl_err *e)
{
	int code = 0;

	for (size_t i = 0; !code && i < n; i++) {
		if (!o[i].temp)
			continue;
		if (dl_rename(o[i].temp->path, o[i].path))
			return fail(&o[i], e);
		untrack(o[i].temp);
		o[i].temp = NULL;
		*named = i + 1;
		if (i + 2 >= n)
			code = dl_fsync_parent(o[i].path, e);
	}
	return code;
}

int dl_output_commit_all(struct dl_output *o, size_t n, struct dl_err *e)
{
	size_t named = 0;
	int code = dl_output_finish_all(o, n, e);

	if (!code)
		code = publish(o, n, &named, e);
	for (size_t i = 0; code && named < n && i < named; i++)
		unlink(o[i].path);
	for (size_t i = 0; i < n; i++)
		dl_output_abort(&o[i]);
	return code;
}

int dl_output_commit(struct dl_output *o, struct dl_err *e)
{
	return dl_output_commit_all(o, 1, e);
}

int dl_output_folder_open(
	struct dl_output_folder *f, const char *path, struct dl_err *e)
{
	int code;

	f->made = NULL;
	if (mkdir(path, 0777))
		return dl_make_folder(path, e);
	f->made = track(path);
	code = dl_fsync_parent(path, e);
	if (code)
		dl_output_folder_close(f);
	return code;
}

void dl_output_folder_close(struct dl_output_folder *f)
{
	if (!f->made)
		return;
	rmdir(f->made->path);
	untrack(f->made);
	f->made = NULL;
}
