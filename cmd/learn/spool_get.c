#include "cmd/learn/spool.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"

/* Looks after which a run that is done is believed to keep its values. */
enum { HOPELESS = 10 };

/* Getting the values of one version. */
struct get {
	struct dl_errand errand;
	struct spool_link *link;
	const char *folder;
	const struct dl_layout *layout;
	uint32_t p;
	struct dl_spool_global what;
	int final;
	float *values; /* of the shelf */
	int code;
	struct dl_err err;
};

static int read_exactly(
	int fd, void *to, size_t n, struct dl_hash *h, struct dl_err *e)
{
	ssize_t got = dl_read_full(fd, to, n);

	if (got < 0)
		return dl_fail_sys(e, DL_IOERR, "cannot read");
	if ((size_t)got < n)
		return dl_fail(e, DL_DATA, "ends too early");
	dl_hash_add(h, to, n);
	return 0;
}

/* It is that version of that fragment, in f32. */
static int check(const struct get *g, const struct dl_header *h,
	uint64_t header_bytes, struct dl_err *e)
{
	struct dl_message m = {0};
	int code = dl_message_unpack(&m, h, NULL, e);

	if (code)
		return code;
	if (m.kind != DL_MSG_GLOBAL || m.fragment != g->p || m.base.epoch ||
		dl_version_cmp(m.version, g->what.version) != 0)
		code = dl_fail(e, DL_DATA, "not what its name says");
	else
		code = dl_layout_check_record(g->layout, g->p, h, e);
	if (!code && header_bytes + h->data_size != g->what.bytes)
		code = dl_fail(e, DL_DATA, "has another size");
	dl_message_release(&m);
	return code;
}

/* The length and the JSON, which fit in the file. */
static int read_header(
	const struct get *g, int fd, struct dl_hash *hash, struct dl_err *e)
{
	unsigned char length[8];
	struct dl_buf json = DL_BUF_INIT;
	struct dl_header h;
	uint64_t n;
	int code = read_exactly(fd, length, sizeof length, hash, e);

	if (code)
		return code;
	n = dl_le64(length);
	if (n > g->what.bytes - sizeof length)
		return dl_fail(e, DL_DATA, "header claims too many bytes");
	dl_buf_reserve(&json, n);
	code = read_exactly(fd, json.data, n, hash, e);
	if (!code)
		code = dl_header_parse(&h, json.data, n, e);
	if (!code) {
		code = check(g, &h, n + sizeof length, e);
		dl_header_release(&h);
	}
	dl_buf_free(&json);
	return code;
}

static int read_values(const struct get *g, int fd, struct dl_err *e)
{
	char hex[DL_HASH_HEX];
	struct dl_hash hash;
	int code;

	dl_hash_init(&hash);
	code = read_header(g, fd, &hash, e);
	if (!code)
		code = read_exactly(fd, g->values,
			g->layout->fragment[g->p].elements * sizeof(float),
			&hash, e);
	dl_hash_hex(&hash, hex);
	if (!code && strcmp(hex, g->what.hash) != 0)
		code = dl_fail(e, DL_DATA, "not the bytes of global/latest");
	return code;
}

static void get_run(struct dl_errand *errand)
{
	struct get *g = (struct get *)errand;
	char path[DL_SPOOL_NAME + 8] = "global/";
	struct stat st;
	int spool, fd;

	dl_spool_version_name(path + strlen(path), g->p, g->what.version);
	g->code = dl_spool_open(g->folder, &spool, &g->err);
	if (g->code)
		return;
	g->code = dl_spool_open_locked(spool, path, &fd, &st, &g->err);
	close(spool);
	if (g->code)
		return;
	if ((uint64_t)st.st_size != g->what.bytes)
		g->code = dl_fail(&g->err, DL_DATA, "has another size");
	else
		g->code = read_values(g, fd, &g->err);
	close(fd);
	if (g->code)
		dl_at(&g->err, "%s", path);
}

static void hand_over(struct get *g)
{
	struct spool_link *s = g->link;
	struct learner *l = s->learner;
	struct dl_learn_event ev = {.kind = DL_LE_GLOBAL,
		.now = dl_now(),
		.fragment = g->p,
		.version = g->what.version,
		.step = g->what.step,
		.final = g->final};

	s->gets_failed = 0;
	s->fragment[g->p].got = g->what.version;
	s->fragment[g->p].final = g->final;
	l->uplink.bytes_in += g->what.bytes;
	weights_came(&l->weights, g->p, g->what.version, g->values);
	learner_event(l, &ev);
}

/* A run that is done publishes nothing any more: what cannot be had now will
 * never be. */
static void do_without(struct spool_link *s)
{
	struct dl_learn_event ev = {.kind = DL_LE_BYE, .now = dl_now()};

	if (s->latest.state != DL_SPOOL_DONE || ++s->gets_failed < HOPELESS)
		return;
	cmd_warn("the run is done and its last values are not to be had");
	learner_event(s->learner, &ev);
}

static void get_done(struct dl_errand *errand)
{
	struct get *g = (struct get *)errand;
	struct spool_link *s = g->link;

	s->getting = 0;
	if (!errand->dropped && !g->code) {
		hand_over(g);
	} else {
		shelf_give(&s->learner->weights.shelf, g->p, g->values);
		if (!errand->dropped) {
			cmd_debug("%s: trying again", g->err.text);
			do_without(s);
		}
	}
	if (!errand->dropped)
		spool_get(s);
	free(g);
}

/* Does the core lack what latest has of p? The final word it needs whatever it
 * has. */
static int is_wanted(const struct spool_link *s, uint32_t p)
{
	const struct spool_fragment *f = &s->fragment[p];

	if (f->tried)
		return 0;
	return dl_version_cmp(s->latest.fragment[p].version, f->got) > 0 ||
	       (s->latest.state >= DL_SPOOL_FINAL && !f->final);
}

/* One at a time: each takes memory. */
void spool_get(struct spool_link *s)
{
	struct learner *l = s->learner;
	struct get *g;
	uint32_t p = 0;

	while (p < s->latest.fragments && !is_wanted(s, p))
		p++;
	if (p == s->latest.fragments || s->getting || l->finishing)
		return;
	s->getting = s->fragment[p].tried = 1;
	g = dl_alloc(sizeof *g);
	*g = (struct get){.errand = {.run = get_run, .done = get_done},
		.link = s,
		.folder = l->options->address.folder,
		.layout = &l->layout,
		.p = p,
		.what = s->latest.fragment[p],
		.final = s->latest.state >= DL_SPOOL_FINAL,
		.values = shelf_take(&l->weights.shelf, p)};
	dl_errands_add(s->errands, &g->errand);
}
