#include "cmd/run/publish.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "link/message.h"
#include "link/spool_file.h"

/* A name that no learner can have. */
static const char temp[] = ".syncer";

/* What fails there says in which spool. */
static int in_spool(const struct pass *p, int code, struct dl_err *e)
{
	return code && e ? dl_at(e, "%s", p->options->spool) : code;
}

/* Puts a text, unless it is there already. */
static int put_text(struct pass *p, const char *path, const struct dl_buf *text,
	struct dl_err *e)
{
	const struct iovec part = {text->data, text->len};
	struct dl_buf now = DL_BUF_INIT;
	int same = !dl_spool_read(p->spool, path, text->len, &now, NULL) &&
		   now.len == text->len &&
		   !memcmp(now.data, text->data, text->len);
	int code;

	dl_buf_free(&now);
	code = same ? 0 : dl_spool_put(p->spool, temp, path, &part, 1, e);
	return in_spool(p, code, e);
}

int publish_begin(struct pass *p, struct dl_err *e)
{
	static const char *const folders[] = {"tmp", "global", "update", "open",
		"taken", "learner", "new", "refused"};
	struct dl_buf text = DL_BUF_INIT;
	int code = 0;

	for (size_t i = 0; !code && i < sizeof folders / sizeof *folders; i++)
		code = in_spool(
			p, dl_spool_make_folder(p->spool, folders[i], e), e);
	dl_layout_write(p->layout, &text);
	if (!code)
		code = put_text(p, "layout.tsv", &text, e);
	dl_buf_free(&text);
	return code;
}

int publish_read(struct pass *p, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_err why;
	int code = dl_spool_read(
		p->spool, "global/latest", DL_SPOOL_TEXT_MAX, &text, &why);

	if (!code)
		code = dl_spool_latest_parse(
			&p->latest, text.data, text.len, &why);
	dl_buf_free(&text);
	if (code == DL_DATA)
		cmd_warn("global/latest: %s: written anew", why.text);
	if (code == DL_DATA || code == DL_NOINPUT)
		return 0;
	if (code)
		return dl_fail(e, code, "%s", why.text);
	if (strcmp(p->latest.run, p->run->name) != 0 ||
		strcmp(p->latest.layout, p->layout->hash) != 0 ||
		p->latest.fragments != p->layout->fragments)
		return dl_fail(e, DL_DATA,
			"%s: is the spool of run %s, and the store of run %s",
			p->options->spool, p->latest.run, p->run->name);
	return 0;
}

/* Puts FOLDER/P.E.N: head, which is freed, and data after it. */
static int put_record(struct pass *p, const char *folder, uint32_t f,
	const struct dl_spool_global *row, struct dl_buf *head,
	const void *data, size_t size, char hash[DL_HASH_HEX], uint64_t *bytes,
	struct dl_err *e)
{
	const struct iovec part[] = {
		{head->data, head->len}, {(void *)data, size}};
	char name[DL_SPOOL_NAME], *path;
	struct dl_hash h;
	int code;

	dl_hash_init(&h);
	dl_hash_add(&h, head->data, head->len);
	dl_hash_add(&h, data, size);
	dl_hash_hex(&h, hash);
	*bytes = head->len + size;
	path = dl_sprintf(
		"%s/%s", folder, dl_spool_version_name(name, f, row->version));
	code = in_spool(p, dl_spool_put(p->spool, temp, path, part, 2, e), e);
	dl_buf_free(head);
	free(path);
	return code;
}

/* Fragment f's values at its version, and what led there if that was made in
 * this pass. */
static int put_global(struct pass *p, uint32_t f, struct dl_spool_global *row,
	struct dl_err *e)
{
	const struct globals *g = &p->globals;
	const struct update *update = globals_update(g, f, row->version);
	struct dl_message m = {.kind = DL_MSG_GLOBAL,
		.fragment = f,
		.version = row->version,
		.step = row->step};
	struct dl_buf head = DL_BUF_INIT;
	int code = globals_load(&p->globals, f, e);

	if (code)
		return code;
	dl_message_pack_data(&m, p->layout, &head);
	code = put_record(p, "global", f, row, &head, globals_values(g, f),
		shelf_bytes(&g->shelf, f), row->hash, &row->bytes, e);
	if (code || !update)
		return code;
	m.base = row->base = update->base;
	dl_message_pack_coded(&m, p->layout, &g->quant, &head);
	return put_record(p, "update", f, row, &head, update->data->data,
		update->data->bytes, row->update, &row->update_bytes, e);
}

uint64_t publish_bytes(const struct pass *p, uint32_t f, struct dl_version had,
	struct dl_version has)
{
	const struct dl_spool_global *row = p->latest.fragment + f;

	if (!p->latest.fragments)
		return 0;
	return row->update_bytes && !dl_version_cmp(has, row->version) &&
			       !dl_version_cmp(had, row->base)
		       ? row->update_bytes
		       : row->bytes;
}

static enum dl_spool_state state_of(const struct pass *p)
{
	struct dl_sync_info info;

	dl_sync_info(p->core, &info);
	return info.done     ? DL_SPOOL_DONE
	       : info.final  ? DL_SPOOL_FINAL
	       : info.ending ? DL_SPOOL_ENDING
			     : DL_SPOOL_RUNNING;
}

/* Is that file still the one that latest named? */
static int is_there(
	const struct pass *p, uint32_t f, const struct dl_spool_global *row)
{
	char name[DL_SPOOL_NAME], *path;
	struct stat st;
	int fd, there;

	path = dl_sprintf(
		"global/%s", dl_spool_version_name(name, f, row->version));
	there = !dl_spool_open_file(p->spool, path, &fd, &st, NULL);
	if (there) {
		close(fd);
		there = (uint64_t)st.st_size == row->bytes;
	}
	free(path);
	return there;
}

static int put_versions(
	struct pass *p, struct dl_spool_latest *v, struct dl_err *e)
{
	const struct dl_sync_saved *head = dl_store_saved(p->globals.store);
	int code = 0;

	for (uint32_t f = 0; !code && f < v->fragments; f++) {
		struct dl_spool_global *row = v->fragment + f;

		row->version = dl_sync_version(p->core, f);
		row->step = head->fragment[f].step;
		if (p->latest.fragments &&
			!dl_version_cmp(
				row->version, p->latest.fragment[f].version) &&
			is_there(p, f, p->latest.fragment + f))
			*row = p->latest.fragment[f];
		else
			code = put_global(p, f, row, e);
	}
	return code;
}

/* The versions first, then the text that names them. */
static int put_latest(struct pass *p, struct dl_err *e)
{
	struct dl_spool_latest v = {.h = p->run->h,
		.tau = p->options->sync.config.tau,
		.wait = p->options->sync.wait,
		.epoch = dl_sync_epoch(p->core),
		.clock = dl_sync_clock(p->core),
		.state = state_of(p),
		.fragments = p->layout->fragments};
	struct dl_buf text = DL_BUF_INIT;
	int code;

	strcpy(v.run, p->run->name);
	strcpy(v.layout, p->layout->hash);
	strcpy(v.global, dl_codec_name(p->globals.quant.codec));
	snprintf(v.apply, sizeof v.apply, "%s", p->options->sync.apply);
	v.fragment = dl_alloc_array(v.fragments, sizeof *v.fragment);
	code = put_versions(p, &v, e);
	if (!code) {
		dl_spool_latest_write(&v, &text);
		code = put_text(p, "global/latest", &text, e);
	}
	dl_buf_free(&text);
	if (code) {
		dl_spool_latest_release(&v);
		return code;
	}
	dl_spool_latest_release(&p->latest);
	p->latest = v;
	return 0;
}

static struct dl_spool_answer answer_of(
	const struct pass *p, const struct book_learner *l, uint32_t f)
{
	const struct book_answer *last = l->answer + f;
	struct dl_spool_answer a = {
		.taken = dl_sync_taken(p->core, l->name, l->instance, f),
		.settled = dl_sync_settled(p->core, l->name, f),
		.word = DL_TAKEN_AGAIN};

	if (a.taken && last->seq == a.taken) {
		a.word = last->word;
		a.reason = last->reason;
	}
	return a;
}

static int put_taken(
	struct pass *p, const struct book_learner *l, struct dl_err *e)
{
	struct dl_spool_taken v = {.instance = l->instance,
		.epoch = dl_sync_epoch(p->core),
		.clock = l->clock,
		.fragments = p->layout->fragments};
	char *path = dl_sprintf("taken/%s", l->name);
	struct dl_buf text = DL_BUF_INIT;
	int code;

	v.fragment = dl_alloc_array(v.fragments, sizeof *v.fragment);
	for (uint32_t f = 0; f < v.fragments; f++)
		v.fragment[f] = answer_of(p, l, f);
	dl_spool_taken_write(&v, &text);
	code = put_text(p, path, &text, e);
	dl_spool_taken_release(&v);
	dl_buf_free(&text);
	free(path);
	return code;
}

/* Whom the open round of f waits for. */
static int put_open(struct pass *p, uint32_t f, struct dl_err *e)
{
	struct dl_sync_learner_info info;
	struct dl_spool_open v = {0};
	struct dl_buf text = DL_BUF_INIT;
	char name[DL_SPOOL_NAME], *path;
	int code = 0;

	for (size_t i = 0; dl_sync_learner(p->core, i, &info); i++)
		if (dl_sync_awaits(p->core, f, i)) {
			v.name = dl_resize(v.name, v.names + 1, sizeof *v.name);
			strcpy(v.name[v.names++], info.name);
		}
	path = dl_sprintf("open/%s",
		dl_spool_open_name(name, dl_sync_round(p->core, f), f));
	if (v.names) {
		dl_spool_open_write(&v, &text);
		code = put_text(p, path, &text, e);
	} else {
		code = dl_spool_remove(p->spool, path, e);
	}
	dl_spool_open_release(&v);
	dl_buf_free(&text);
	free(path);
	return code;
}

/* Rounds that are over. */
static int remove_closed(struct pass *p, struct dl_err *e)
{
	struct dl_spool_names names;
	int code = dl_spool_list(p->spool, "open", &names, e);

	if (code)
		return code;
	for (size_t i = 0; !code && i < names.n; i++) {
		char *path = dl_sprintf("open/%s", names.name[i]);
		uint64_t step;
		uint32_t f;

		if (!dl_spool_open_name_parse(names.name[i], &step, &f) &&
			(f >= p->layout->fragments ||
				dl_sync_round(p->core, f) != step))
			code = dl_spool_remove(p->spool, path, e);
		free(path);
	}
	dl_spool_names_release(&names);
	return code;
}

int publish(struct pass *p, struct dl_err *e)
{
	int code = put_latest(p, e);

	for (size_t i = 0; !code && i < p->book.learners; i++)
		if (p->book.learner[i]->here)
			code = put_taken(p, p->book.learner[i], e);
	if (!code)
		code = remove_closed(p, e);
	for (uint32_t f = 0; !code && f < p->layout->fragments; f++)
		if (dl_sync_round(p->core, f))
			code = put_open(p, f, e);
	return code;
}
