#include "cmd/learn/saves.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/learn/learner.h"

#define PREFIX "save."

/* Parameters and two moments, twice; some trainers have less, few more. */
unsigned saves_models(const struct learn_options *o)
{
	return !o->state && (o->save_steps || o->save_ns) ? 6 : 0;
}

/* Files of other processes, of which those that are killed leave some. */
static void sweep(const struct saves *s)
{
	DIR *d = opendir(s->folder);
	struct dirent *entry;

	while (d && (entry = readdir(d))) {
		char *path = dl_sprintf("%s/%s", s->folder, entry->d_name);
		int ours = 0;

		for (int i = 0; i < SAVE_FILES; i++)
			ours |= s->path[i] && !strcmp(path, s->path[i]);
		if (!ours && (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)) ||
				     !strncmp(entry->d_name, SAVE_NOTE ".tmp.",
					     strlen(SAVE_NOTE ".tmp."))))
			unlink(path);
		free(path);
	}
	if (d)
		closedir(d);
}

static void describe(const struct learner *l, struct save_note *n)
{
	strcpy(n->run, l->run);
	strcpy(n->learner, l->name);
	strcpy(n->layout, l->layout.hash);
	n->epoch = l->epoch;
}

struct find {
	struct dl_errand errand;
	struct learner *learner;
	struct save_note own, note;
	int joined; /* a peer's state is there, which is newer than any save */
	int code;
	struct dl_err err;
};

static void find_run(struct dl_errand *errand)
{
	struct find *f = (struct find *)errand;
	struct saves *s = &f->learner->saves;

	f->code =
		save_note_find(&f->note, &f->own, s->folder, &s->stop, &f->err);
}

static void find_done(struct dl_errand *errand)
{
	struct find *f = (struct find *)errand;
	struct saves *s = &f->learner->saves;

	s->finding = 0;
	if (!errand->dropped && !f->code) {
		s->path[SAVE_FOUND] =
			dl_sprintf("%s/%s", s->folder, f->note.file);
		s->last = s->kept = SAVE_FOUND;
		cmd_note("has a save of clock %" PRIu64 "%s", f->note.clock,
			f->joined ? ": a peer's state is newer" : "");
	} else if (!errand->dropped && f->code != DL_NOINPUT &&
		   f->code != DL_TEMPFAIL) {
		cmd_warn("%s: %s", f->err.text,
			f->joined ? "is not needed" : "begins anew");
	}
	if (!errand->dropped && f->code != DL_TEMPFAIL)
		sweep(s);
	free(f);
}

static void begin_finding(struct learner *l)
{
	struct find *f = dl_alloc(sizeof *f);

	f->errand = (struct dl_errand){.run = find_run, .done = find_done};
	f->learner = l;
	f->joined = l->donated.versions != NULL;
	describe(l, &f->own);
	l->saves.finding = 1;
	dl_errands_add(l->saves.errands, &f->errand);
}

/* One process has a folder, as one learner has a name. */
static int lock_folder(struct saves *s, struct dl_err *e)
{
	s->lock = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->lock < 0)
		return dl_fail_sys(e, DL_IOERR, "%s", s->folder);
	if (!flock(s->lock, LOCK_EX | LOCK_NB))
		return 0;
	return errno == EWOULDBLOCK
		       ? dl_fail(e, DL_TEMPFAIL, "%s: another learner has it",
				 s->folder)
		       : dl_fail_sys(e, DL_IOERR, "%s", s->folder);
}

/* --state: a folder in it for this learner of this run. */
static int take_folder(struct learner *l, struct dl_err *e)
{
	struct saves *s = &l->saves;
	char *run = dl_sprintf("%s/%s", l->options->state, l->run);
	int code = dl_make_folder(run, e);

	s->durable = 1;
	s->folder = dl_sprintf("%s/%s", run, l->name);
	free(run);
	if (!code)
		code = dl_make_folder(s->folder, e);
	if (!code)
		code = lock_folder(s, e);
	if (!code)
		s->errands = dl_errands_new(&l->loop, e);
	return !code && !s->errands ? e->code : code;
}

static void release_folder(struct saves *s)
{
	for (int i = 0; i < SAVE_FILES; i++) {
		free(s->path[i]);
		s->path[i] = NULL;
	}
	free(s->folder);
	s->folder = NULL;
	if (s->lock >= 0)
		close(s->lock);
	s->lock = -1;
}

void saves_begin(struct learner *l)
{
	const struct learn_options *o = l->options;
	struct saves *s = &l->saves;
	struct dl_err e;

	if (!o->state && !o->save_steps && !o->save_ns)
		return;
	if (!o->state) {
		s->folder = dl_strdup(l->scratch.path);
	} else if (take_folder(l, &e)) {
		cmd_warn("%s: nothing is saved", e.text);
		release_folder(s);
		return;
	}
	/* No trainer of a process before this one writes there any more. */
	for (int i = 0; i < 2; i++)
		s->path[i] = dl_sprintf("%s/" PREFIX "%016" PRIx64 ".%d",
			s->folder, l->instance, i);
	s->next = dl_now() + o->save_ns;
	if (s->durable)
		begin_finding(l);
}

static int is_over(const struct learner *l)
{
	struct dl_learn_info info;

	dl_learn_info(l->core, &info);
	return info.finished && !drain_asked(l) && !l->code;
}

/* Of a run that is over nothing is wanted any more. */
static void remove_all(struct learner *l)
{
	struct saves *s = &l->saves;
	char *path = dl_sprintf("%s/" SAVE_NOTE, s->folder);

	unlink(path);
	free(path);
	for (int i = 0; i < SAVE_FILES; i++)
		if (s->path[i])
			unlink(s->path[i]);
	rmdir(s->folder);
	path = dl_sprintf("%s/%s", l->options->state, l->run);
	rmdir(path); /* other learners may be there */
	free(path);
}

void saves_release(struct learner *l)
{
	struct saves *s = &l->saves;

	s->stop = 1;
	dl_errands_free(s->errands);
	s->errands = NULL;
	if (s->folder && s->durable && is_over(l))
		remove_all(l);
	release_folder(s);
}

int saves_finding(const struct learner *l)
{
	return l->saves.finding;
}

const char *saves_last(const struct learner *l)
{
	const struct saves *s = &l->saves;

	return s->last < 0 ? NULL : s->path[s->last];
}

void saves_distrust(struct learner *l, const char *why)
{
	struct saves *s = &l->saves;

	cmd_warn("%s: begins anew, not from its save", why);
	s->last = -1;
	s->fresh = 0;
}

void saves_tried(struct learner *l)
{
	l->saves.fresh = 1;
}

void saves_suspect(struct learner *l)
{
	l->saves.fresh = l->saves.last >= 0;
}

int saves_due(const struct learner *l, int64_t now)
{
	const struct learn_options *o = l->options;
	const struct saves *s = &l->saves;

	if (!s->folder || !s->steps || s->asked >= 0)
		return 0;
	if (s->finding || s->busy >= 0)
		return 0;
	if (l->finishing)
		return s->durable && drain_asked(l);
	return o->save_steps ? s->steps >= o->save_steps : now >= s->next;
}

const char *saves_ask(struct learner *l, int64_t now)
{
	struct saves *s = &l->saves;

	s->asked = s->kept == 0;
	/* It is about to be overwritten. */
	if (s->last == s->asked)
		s->last = s->kept;
	s->steps = 0;
	s->next = now + l->options->save_ns;
	s->clock = dl_learn_clock(l->core);
	return s->path[s->asked];
}

struct seal {
	struct dl_errand errand;
	struct learner *learner;
	struct save_note note;
	int file;
	int code;
	struct dl_err err;
};

static void seal_run(struct dl_errand *errand)
{
	struct seal *x = (struct seal *)errand;

	x->code = save_note_seal(&x->note, x->learner->saves.folder, &x->err);
}

/* Says once that saves fail, and that they work again. */
static void report(struct saves *s, const struct dl_err *why)
{
	if (why && !s->failed)
		cmd_warn("%s: its save failed, trying again later", why->text);
	if (!why && s->failed)
		cmd_note("saves again");
	s->failed = why != NULL;
}

static void seal_done(struct dl_errand *errand)
{
	struct seal *x = (struct seal *)errand;
	struct saves *s = &x->learner->saves;

	s->busy = -1;
	report(s, x->code ? &x->err : NULL);
	if (!x->code) {
		s->kept = x->file;
		if (s->path[SAVE_FOUND] && s->last != SAVE_FOUND)
			unlink(s->path[SAVE_FOUND]);
	}
	free(x);
}

static void begin_sealing(struct learner *l, int file)
{
	struct seal *x = dl_alloc(sizeof *x);
	const char *path = l->saves.path[file];

	x->errand = (struct dl_errand){.run = seal_run, .done = seal_done};
	x->learner = l;
	x->file = file;
	describe(l, &x->note);
	x->note.clock = l->saves.clock;
	strcpy(x->note.file, strrchr(path, '/') + 1);
	l->saves.busy = file;
	dl_errands_add(l->saves.errands, &x->errand);
}

void saves_done(struct learner *l, const struct dl_err *why)
{
	struct saves *s = &l->saves;
	int file = s->asked;

	s->asked = -1;
	if (why) {
		/* Its room may be wanted. */
		unlink(s->path[file]);
		report(s, why);
		return;
	}
	cmd_debug("saved at clock %" PRIu64, s->clock);
	s->last = file;
	if (s->durable) {
		begin_sealing(l, file);
	} else {
		s->kept = file;
		report(s, NULL);
	}
}

void saves_step(struct learner *l)
{
	l->saves.steps++;
	l->saves.fresh = 0;
}

void saves_death(struct learner *l, const struct dl_err *why)
{
	struct saves *s = &l->saves;

	s->asked = -1;
	s->steps = 0;
	/* It may be what killed the trainer. */
	if (s->fresh)
		saves_distrust(l, why->text);
}

int saves_idle(const struct learner *l)
{
	return l->saves.busy < 0 && l->saves.asked < 0;
}
