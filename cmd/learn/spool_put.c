#include "cmd/learn/spool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/num.h"
#include "cmd/cmd.h"

/* Who says nothing for longer is taken for dead at last. */
static const int64_t tell_every = 10 * DL_SECOND;

/* Putting a file: learner/NAME, or a push. */
struct put {
	struct dl_errand errand;
	struct spool_link *link;
	const char *folder;
	char *temp;	    /* name in tmp/ */
	char *path;	    /* of the file, or of a push's folder */
	struct dl_buf head; /* owned; data is not */
	const void *data;
	size_t bytes;
	struct push *push; /* NULL for learner/NAME */
	struct dl_spool_push name;
	int code;
	struct dl_err err;
};

static struct put *put_new(struct spool_link *s, const char *what)
{
	struct put *put = dl_alloc(sizeof *put);
	const struct learner *l = s->learner;

	put->link = s;
	put->folder = l->options->address.folder;
	put->temp = dl_sprintf("%s.%s", l->name, what);
	return put;
}

static void put_free(struct put *put)
{
	free(put->temp);
	free(put->path);
	dl_buf_free(&put->head);
	free(put);
}

/* The name of a push has its hash. */
static void finish_path(struct put *put)
{
	char name[DL_SPOOL_NAME], *folder = put->path;
	struct dl_hash h;

	dl_hash_init(&h);
	dl_hash_add(&h, put->head.data, put->head.len);
	dl_hash_add(&h, put->data, put->bytes);
	dl_hash_hex(&h, put->name.hash);
	put->path = dl_sprintf(
		"%s/%s", folder, dl_spool_push_name(name, &put->name));
	free(folder);
}

/* A push that was put before and is not taken yet. */
static int is_there(const struct put *put, int spool)
{
	struct stat st;
	int fd;

	if (dl_spool_open_file(spool, put->path, &fd, &st, NULL))
		return 0;
	close(fd);
	return (uint64_t)st.st_size == put->head.len + put->bytes;
}

static void put_run(struct dl_errand *errand)
{
	struct put *put = (struct put *)errand;
	struct iovec part[] = {{put->head.data, put->head.len},
		{(void *)put->data, put->bytes}};
	int spool;

	if (put->push)
		finish_path(put);
	put->code = dl_spool_open(put->folder, &spool, &put->err);
	if (put->code)
		return;
	if (!put->push || !is_there(put, spool))
		put->code = dl_spool_put(
			spool, put->temp, put->path, part, 2, &put->err);
	close(spool);
	if (put->code)
		dl_at(&put->err, "%s", put->folder);
}

/* Says once that puts fail, and that they work again. */
static void report(struct spool_link *s, const struct put *put)
{
	if (put->code && !s->put_failed)
		cmd_warn("%s: trying again", put->err.text);
	if (!put->code && s->put_failed)
		cmd_note("%s can be written again", put->folder);
	s->put_failed = put->code != 0;
}

static void tell_done(struct dl_errand *errand)
{
	struct put *put = (struct put *)errand;

	if (!errand->dropped) {
		put->link->stale |= put->code != 0;
		report(put->link, put);
	}
	put_free(put);
}

static void describe(struct spool_link *s, struct dl_buf *out)
{
	struct learner *l = s->learner;
	uint32_t fragments = l->layout.fragments;
	struct dl_learn_info info;
	struct dl_spool_learner v = {.instance = l->instance,
		.loss = l->loss,
		.state = s->doing,
		.version = dl_alloc_array(fragments, sizeof *v.version),
		.fragments = fragments};

	dl_learn_info(l->core, &info);
	v.clock = info.clock;
	v.steps = info.steps;
	v.tokens = info.tokens;
	memcpy(v.layout, l->layout.hash, sizeof v.layout);
	for (uint32_t p = 0; p < fragments; p++)
		v.version[p] = dl_learn_version(l->core, p);
	dl_spool_learner_write(&v, out);
	free(v.version);
}

void spool_tell(struct spool_link *s, int64_t now)
{
	struct learner *l = s->learner;
	struct put *put;

	if (!l->core || (!s->stale && now - s->told_at < tell_every))
		return;
	put = put_new(s, "learner");
	put->errand = (struct dl_errand){.run = put_run, .done = tell_done};
	put->path = dl_sprintf("learner/%s", l->name);
	describe(s, &put->head);
	s->stale = 0;
	s->told_at = now;
	dl_errands_add(s->errands, &put->errand);
}

/* It is safe in the spool: nothing more is needed to deliver it. */
static void push_is_there(struct spool_link *s, const struct put *put)
{
	struct dl_learn_event ev = {.kind = DL_LE_TAKEN,
		.now = dl_now(),
		.fragment = put->name.fragment,
		.seq = put->name.seq,
		.taken = DL_TAKEN_ROUND};

	s->learner->uplink.bytes_out += put->head.len + put->bytes;
	learner_event(s->learner, &ev);
}

static void push_done(struct dl_errand *errand)
{
	struct put *put = (struct put *)errand;
	struct spool_link *s = put->link;
	struct push *push = put->push;
	int there = !errand->dropped && !put->code;

	push->sending = 0;
	/* The core may have changed its mind about the step meanwhile. */
	push->put = there && push->what.step == put->name.step;
	there = push->put;
	weights_drop(push->owner, push);
	if (!errand->dropped)
		report(s, put);
	if (there)
		push_is_there(s, put);
	put_free(put);
}

static void write_head(
	struct learner *l, const struct push *push, struct dl_buf *head)
{
	struct dl_writer w = DL_WRITER_INIT;

	uplink_push_record(l, push, &w);
	dl_writer_meta(&w, "dl.run", l->run);
	dl_writer_meta(&w, "dl.layout", l->layout.hash);
	dl_writer_meta(&w, "dl.learner", l->name);
	dl_writer_meta_u64(&w, "dl.instance", l->instance);
	dl_writer_finish(&w, head, NULL);
	dl_writer_release(&w);
}

void spool_put(struct spool_link *s, struct push *push)
{
	struct learner *l = s->learner;
	const struct dl_learn_action *a = &push->what;
	struct put *put = put_new(s, "push");

	put->errand = (struct dl_errand){.run = put_run, .done = push_done};
	put->path = dl_sprintf("new/%s", l->name);
	put->push = push;
	put->name = (struct dl_spool_push){
		.step = a->step, .fragment = a->fragment, .seq = a->seq};
	put->data = push->data;
	put->bytes = push->bytes;
	write_head(l, push, &put->head);
	push->sending = 1;
	dl_errands_add(s->errands, &put->errand);
}

void spool_put_again(struct spool_link *s)
{
	struct push *push = s->learner->weights.push;

	for (; push; push = push->next)
		if (push->data && !push->put && !push->sending &&
			!push->settled)
			spool_put(s, push);
}
