/*
 * spool_push SPOOL LEARNER INSTANCE FRAGMENT SEQ STEP STEPS TOKENS [SEED]
 *
 * Puts a push into a spool as a learner would: a delta of normal values that
 * depends on SEED, from the newest version. Prints its path in the spool.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/rng.h"
#include "link/message.h"
#include "link/spool.h"
#include "link/spool_file.h"

static void must(int code, const struct dl_err *e)
{
	if (!code)
		return;
	fprintf(stderr, "spool_push: %s\n", e->text);
	exit(code);
}

static uint64_t number(const char *s)
{
	uint64_t v;

	if (dl_parse_u64(s, 0, UINT64_MAX, &v)) {
		fprintf(stderr, "spool_push: %s: no number\n", s);
		exit(64);
	}
	return v;
}

static struct dl_spool_latest read_latest(int spool)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_spool_latest v;
	struct dl_err e;

	must(dl_spool_read(spool, "global/latest", 1 << 20, &text, &e), &e);
	must(dl_spool_latest_parse(&v, text.data, text.len, &e), &e);
	dl_buf_free(&text);
	return v;
}

static struct dl_layout read_layout(const char *spool)
{
	char *path = dl_sprintf("%s/layout.tsv", spool);
	struct dl_layout l;
	struct dl_err e;

	must(dl_layout_read(&l, path, &e), &e);
	free(path);
	return l;
}

/* The header of the record, and its data. */
static void make(struct dl_buf *out, const struct dl_message *m,
	const struct dl_layout *l, const char *run, const char *learner,
	uint64_t instance, uint64_t seed)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_rng r = {dl_rng_key(seed, m->fragment), 0};

	dl_message_meta(m, &w);
	dl_writer_meta(&w, "dl.run", run);
	dl_writer_meta(&w, "dl.learner", learner);
	dl_writer_meta_u64(&w, "dl.instance", instance);
	dl_layout_record(l, m->fragment, &w);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
	for (uint64_t i = 0; i < l->fragment[m->fragment].elements; i++) {
		float x = (float)(1e-3 * dl_rng_normal(&r));

		dl_buf_add(out, &x, sizeof x);
	}
}

static void put(int spool, const char *learner, const struct dl_message *m,
	const struct dl_buf *record)
{
	struct dl_spool_push name = {
		.step = m->step, .seq = m->seq, .fragment = m->fragment};
	const struct iovec part = {record->data, record->len};
	char file[DL_SPOOL_NAME], *folder, *path;
	struct dl_hash h;
	struct dl_err e;

	dl_hash_init(&h);
	dl_hash_add(&h, record->data, record->len);
	dl_hash_hex(&h, name.hash);
	folder = dl_sprintf("new/%s", learner);
	path = dl_sprintf("%s/%s", folder, dl_spool_push_name(file, &name));
	must(dl_spool_make_folder(spool, folder, &e), &e);
	must(dl_spool_put(spool, learner, path, &part, 1, &e), &e);
	puts(path);
	free(folder);
	free(path);
}

int main(int argc, char **argv)
{
	struct dl_message m = {.kind = DL_MSG_PUSH, .codec = "f32"};
	struct dl_buf record = DL_BUF_INIT;
	struct dl_spool_latest latest;
	struct dl_layout layout;
	struct dl_err e;
	int spool;

	if (argc < 9)
		return 64;
	must(dl_spool_open(argv[1], &spool, &e), &e);
	latest = read_latest(spool);
	layout = read_layout(argv[1]);
	m.fragment = (uint32_t)number(argv[4]);
	m.seq = number(argv[5]);
	m.step = number(argv[6]);
	m.steps = number(argv[7]);
	m.tokens = number(argv[8]);
	m.base = latest.fragment[m.fragment].version;
	make(&record, &m, &layout, latest.run, argv[2], number(argv[3]),
		argc > 9 ? number(argv[9]) : 1);
	put(spool, argv[2], &m, &record);
	dl_buf_free(&record);
	dl_layout_release(&layout);
	dl_spool_latest_release(&latest);
	return 0;
}
