#include "cmd/serve/record.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "cmd/serve/server.h"

/* What a learner says of itself counts less than whom we know it to be. */
static int is_ours(const struct dl_string *key)
{
	static const char *const ours[] = {
		"dl.instance", "dl.layout", "dl.learner", "dl.run"};

	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		if (strlen(ours[i]) == key->n &&
			!memcmp(ours[i], key->s, key->n))
			return 1;
	return 0;
}

static void describe(
	struct dl_writer *w, const struct peer *peer, const struct dl_header *h)
{
	const struct server *s = peer->server;

	for (size_t i = 0; i < h->metas; i++) {
		const struct dl_string *m = h->meta[i];

		if (strlen(m[0].s) == m[0].n && !is_ours(&m[0]))
			dl_writer_meta_n(w, m[0].s, m[1].s, m[1].n);
	}
	dl_writer_meta_u64(w, "dl.instance", peer->instance);
	dl_writer_meta(w, "dl.layout", s->layout->hash);
	dl_writer_meta(w, "dl.learner", peer->name);
	dl_writer_meta(w, "dl.run", s->run->name);
}

/* The whole record, in canonical form. */
static void pack(struct dl_buf *out, const struct peer *peer,
	const struct dl_header *h, const unsigned char *data)
{
	struct dl_writer w = DL_WRITER_INIT;
	size_t *order = dl_alloc_array(h->tensors, sizeof *order);

	describe(&w, peer, h);
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[i];

		dl_writer_tensor(
			&w, t->name.s, t->name.n, t->dtype, t->rank, t->shape);
	}
	dl_writer_finish(&w, out, order);
	dl_writer_release(&w);
	dl_buf_reserve_exact(out, h->data_size);
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[order[i]];

		dl_buf_add(out, data + t->offset, t->size);
	}
	free(order);
}

int record_push(const struct peer *peer, const struct dl_header *h,
	const unsigned char *data, struct dl_err *e)
{
	const char *folder = peer->server->options->record;
	struct dl_buf record = DL_BUF_INIT;
	char hex[DL_HASH_HEX], *path;
	struct dl_hash hash;
	int rc = 0;

	pack(&record, peer, h, data);
	dl_hash_init(&hash);
	dl_hash_add(&hash, record.data, record.len);
	dl_hash_hex(&hash, hex);
	path = dl_sprintf("%s/%s", folder, hex);
	/* A push that comes again is the same file. */
	if (access(path, F_OK))
		rc = dl_write_file(path, record.data, record.len, e);
	free(path);
	dl_buf_free(&record);
	return rc;
}
