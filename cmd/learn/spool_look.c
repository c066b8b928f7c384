#include "cmd/learn/spool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAYOUT_MAX = 256 << 20, OPEN_MAX_ROUNDS = 1 << 16 };

static int read_latest(struct look *k, int spool)
{
	struct dl_buf text = DL_BUF_INIT;
	int code = dl_spool_read(
		spool, "global/latest", DL_SPOOL_TEXT_MAX, &text, &k->err);

	if (!code &&
		dl_spool_latest_parse(&k->latest, text.data, text.len, &k->err))
		code = dl_at(&k->err, "global/latest");
	dl_buf_free(&text);
	return code;
}

/* None is fine: the syncer has not seen this learner. */
static int read_taken(struct look *k, int spool)
{
	struct dl_buf text = DL_BUF_INIT;
	char *path = dl_sprintf("taken/%s", k->name);
	int code =
		dl_spool_read(spool, path, DL_SPOOL_TEXT_MAX, &text, &k->err);

	if (!code &&
		dl_spool_taken_parse(&k->taken, text.data, text.len, &k->err))
		code = dl_at(&k->err, "%s", path);
	if (!code && k->taken.fragments != k->latest.fragments)
		code = dl_fail(&k->err, DL_DATA,
			"%s: not as many fragments as global/latest", path);
	free(path);
	dl_buf_free(&text);
	return code == DL_NOINPUT ? 0 : code;
}

static int is_asked(struct look *k, int spool, const char *name)
{
	struct dl_spool_open open = {0};
	struct dl_buf text = DL_BUF_INIT;
	char *path = dl_sprintf("open/%s", name);
	int asked = 0;

	/* One that is closed meanwhile, or not whole yet, asks for nothing. */
	if (!dl_spool_read(spool, path, DL_SPOOL_TEXT_MAX, &text, NULL) &&
		!dl_spool_open_parse(&open, text.data, text.len, NULL))
		asked = dl_spool_open_has(&open, k->name);
	dl_spool_open_release(&open);
	dl_buf_free(&text);
	free(path);
	return asked;
}

static int read_opens(struct look *k, int spool)
{
	struct dl_spool_names names;
	struct look_open open;
	int code = dl_spool_list(spool, "open", &names, &k->err);

	if (code)
		return code == DL_NOINPUT ? 0 : code;
	k->open = dl_alloc_array(names.n + 1, sizeof *k->open);
	for (size_t i = 0; i < names.n && k->opens < OPEN_MAX_ROUNDS; i++)
		if (!dl_spool_open_name_parse(
			    names.name[i], &open.step, &open.fragment) &&
			open.fragment < k->latest.fragments &&
			is_asked(k, spool, names.name[i]))
			k->open[k->opens++] = open;
	dl_spool_names_release(&names);
	return 0;
}

static void look_run(struct dl_errand *errand)
{
	struct look *k = (struct look *)errand;
	int spool;

	k->code = dl_spool_open(k->path, &spool, &k->err);
	if (k->code)
		return;
	k->code = dl_spool_lock(spool, k->name, k->lock, &k->err);
	if (!k->code)
		k->code = read_latest(k, spool);
	if (!k->code && k->with_layout)
		k->code = dl_spool_read(
			spool, "layout.tsv", LAYOUT_MAX, &k->layout, &k->err);
	if (!k->code)
		k->code = read_taken(k, spool);
	if (!k->code)
		k->code = read_opens(k, spool);
	if (k->code)
		dl_at(&k->err, "%s", k->path);
	close(spool);
}

struct look *look_new(struct spool_link *s, void (*done)(struct dl_errand *))
{
	struct look *k = dl_alloc(sizeof *k);

	k->errand = (struct dl_errand){.run = look_run, .done = done};
	k->link = s;
	k->path = s->learner->options->address.folder;
	k->name = s->learner->name;
	k->with_layout = !s->learner->core;
	k->lock = &s->lock;
	return k;
}

void look_free(struct look *k)
{
	dl_spool_latest_release(&k->latest);
	dl_spool_taken_release(&k->taken);
	dl_buf_free(&k->layout);
	free(k->open);
	free(k);
}
