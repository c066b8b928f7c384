#include "cmd/join/live.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/client.h"
#include "cmd/join/spool.h"
#include "tensor/packed.h"

struct live {
	struct client client;
	struct dl_layout layout; /* of the welcome */
	float **values;		 /* P; NULL until it comes */
	uint32_t missing;
};

int join_is_link(const char *source)
{
	return !strncmp(source, "unix:", 5) || !strncmp(source, "tcp:", 4) ||
	       !strncmp(source, "exec:", 5) ||
	       !strncmp(source, "dir:", 4);
}

static size_t bytes_of(const struct live *v, uint32_t p)
{
	return v->layout.fragment[p].elements * sizeof(float);
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct live *v = ctx;

	(void)c;
	if (m->kind == DL_MSG_ERROR)
		return client_refused(m, e);
	if (m->kind != DL_MSG_WELCOME || v->values)
		return 0;
	if (dl_layout_parse(&v->layout, m->text, m->text_n, e))
		return dl_at(e, "layout");
	v->missing = v->layout.fragments;
	v->values = dl_alloc_array(v->missing, sizeof *v->values);
	return 0;
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct live *v = ctx;
	uint32_t p = m->fragment;

	(void)c;
	if (m->kind != DL_MSG_GLOBAL || !v->values ||
		p >= v->layout.fragments || v->values[p])
		return dl_fail(e, DL_PROTOCOL, "sends what was not asked for");
	if (dl_layout_check_record(&v->layout, p, h, e))
		return e->code;
	v->values[p] = dl_big_alloc(bytes_of(v, p));
	*dest = v->values[p];
	return 0;
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct live *v = ctx;

	(void)c;
	(void)m;
	(void)h;
	(void)dest;
	(void)e;
	v->client.done = !--v->missing;
	return 0;
}

static void release(struct live *v)
{
	for (uint32_t p = 0; v->values && p < v->layout.fragments; p++)
		if (v->values[p])
			dl_big_free(v->values[p], bytes_of(v, p));
	free(v->values);
	dl_layout_release(&v->layout);
}

static int fetch(struct live *v, const struct dl_address *a,
	enum dl_insecure allowed, struct dl_err *e)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, on_whole};
	static const struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_OBSERVER,
		.codecs = "f32"};
	int code = client_open(&v->client, a, allowed, &handlers, v, e);

	if (code)
		return code;
	dl_conn_send(&v->client.conn, &hello);
	code = client_wait(&v->client, e);
	client_close(&v->client);
	return code;
}

int join_live(const struct dl_address *a, enum dl_insecure allowed,
	const struct dl_save *s, struct dl_err *e)
{
	struct live v = {0};
	int code = dl_save_check(s, e);

	if (!code)
		code = a->kind == DL_LINK_DIR
			       ? join_spool(a->folder, &v.layout, &v.values, e)
			       : fetch(&v, a, allowed, e);
	if (!code)
		code = dl_packed_write(&v.layout,
			(const float *const *)v.values, DL_PACKED_OWN, s, e);
	release(&v);
	return code;
}
