#include "cmd/learn/export.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

/* Whoever comes often must not make the trainer stand often. */
static const int64_t apart = 5 * DL_SECOND;
/* A trainer that is told of the file needs a while to make use of it: as long
 * as it takes a slow machine to touch so much memory, within reason. */
enum { TOUCHED = 25000000 }; /* bytes a second */
static const int64_t notice_most = 30 * DL_SECOND;

void export_init(struct export_file *x)
{
	*x = (struct export_file){.fd = -1};
}

void export_release(struct export_file *x)
{
	if (x->fd >= 0)
		close(x->fd);
	free(x->path);
	free(x->versions);
}

/* Parameters and two moments of each, as most optimizers have, and a header. A
 * trainer that needs more takes longer, once. */
uint64_t export_size(const struct learner *l)
{
	uint64_t bytes = 1 << 20;

	for (uint32_t p = 0; p < l->layout.fragments; p++)
		bytes += 3 * l->layout.fragment[p].elements * sizeof(float);
	return bytes + 1024 * (uint64_t)l->layout.tensors;
}

static void fail(struct export_file *x, const struct dl_err *why)
{
	x->state = EXPORT_FAILED;
	x->whole = x->asked = 0;
	x->why = *why;
	cmd_warn("cannot serve its state: %s", why->text);
}

/* The system gives memory when it is written to, which takes far longer than
 * writing to it again. */
static int touch(int fd, uint64_t bytes)
{
	/* Constants are in the program's file. */
	static unsigned char zeroes[1 << 20];

	while (bytes) {
		size_t n =
			bytes < sizeof zeroes ? (size_t)bytes : sizeof zeroes;

		if (dl_write_full(fd, zeroes, n))
			return -1;
		bytes -= n;
	}
	return 0;
}

static void make_room(struct dl_errand *errand)
{
	struct export_room *room = (void *)errand;

	if (touch(room->fd, room->bytes))
		room->code = dl_fail_sys(&room->err, DL_IOERR,
			"no room for it in the scratch folder");
}

static void room_made(struct dl_errand *errand)
{
	struct export_room *room = (void *)errand;
	struct export_file *x = &room->learner->serving.file;

	if (errand->dropped)
		return;
	if (room->code)
		fail(x, &room->err);
	else
		x->state = EXPORT_TELLING;
	if (room->code && ftruncate(x->fd, 0))
		cmd_debug("and that room stays taken");
}

void export_expect(struct learner *l)
{
	struct export_file *x = &l->serving.file;
	struct dl_err e;

	if (x->state != EXPORT_NOTHING)
		return;
	x->path = dl_scratch_file(&l->scratch, "export.safetensors");
	x->versions = dl_alloc_array(l->layout.fragments, sizeof *x->versions);
	x->fd = open(x->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (x->fd < 0) {
		dl_fail_sys(&e, DL_CANTCREAT, "%s", x->path);
		fail(x, &e);
		return;
	}
	x->state = EXPORT_MAKING;
	x->room = (struct export_room){
		.errand = {.run = make_room, .done = room_made},
		.learner = l,
		.fd = x->fd,
		.bytes = export_size(l)};
	dl_errands_add(l->serving.errands, &x->room.errand);
}

void export_want(struct learner *l, uint64_t clock, int64_t now)
{
	struct export_file *x = &l->serving.file;
	struct dl_learn_event ev = {
		.kind = DL_LE_EXPORT, .now = now, .clock = clock};

	export_expect(l);
	if (x->state != EXPORT_READY || x->asked || x->readers || now < x->next)
		return;
	x->asked = 1;
	x->whole = 0;
	learner_event(l, &ev);
}

int64_t export_wake(const struct export_file *x, int64_t now)
{
	return x->state == EXPORT_READY && !x->asked && now < x->next
		       ? x->next
		       : INT64_MAX;
}

int export_note(struct learner *l, const struct dl_learn_action *a)
{
	struct export_file *x = &l->serving.file;

	if (!x->asked)
		return 0;
	x->clock = a->clock;
	for (uint32_t p = 0; p < l->layout.fragments; p++)
		x->versions[p] = dl_learn_version(l->core, p);
	return 1;
}

static int is_in_memory(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) &&
	       (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
}

static int64_t notice(uint64_t bytes)
{
	uint64_t seconds = 1 + bytes / TOUCHED;

	return seconds < 30 ? (int64_t)seconds * DL_SECOND : notice_most;
}

const char *export_prepare(struct learner *l, int64_t now)
{
	struct export_file *x = &l->serving.file;

	if (x->state != EXPORT_TELLING)
		return NULL;
	x->state = EXPORT_READY;
	if (!is_in_memory(x->fd))
		return NULL;
	x->next = now + notice(x->room.bytes);
	return x->path;
}

void export_begin(struct export_file *x, int64_t now)
{
	x->began = now;
}

/* It may have made a new file rather than write to the one that was there. */
static int look(struct export_file *x, struct dl_err *e)
{
	int fd = open(x->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return dl_fail_sys(e, DL_IOERR, "%s", x->path);
	close(x->fd);
	x->fd = fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return dl_fail(e, DL_DATA, "trainer: exports nothing");
	x->bytes = (uint64_t)st.st_size;
	return 0;
}

void export_done(struct learner *l, const struct dl_err *refused, int64_t now)
{
	struct export_file *x = &l->serving.file;
	char size[DL_HUMAN], time[DL_HUMAN];
	struct dl_err e;

	if (refused || look(x, &e)) {
		fail(x, refused ? refused : &e);
		return;
	}
	x->asked = 0;
	x->whole = 1;
	x->next = now + apart;
	cmd_debug("state of clock %llu: %s in %s", (unsigned long long)x->clock,
		dl_human_size(size, x->bytes),
		dl_human_duration(time, now - x->began));
}

void export_lost(struct export_file *x)
{
	if (x->state == EXPORT_READY)
		x->state = EXPORT_TELLING;
	x->asked = 0;
}
