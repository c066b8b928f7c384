#include "cmd/stat/live.h"

#include <stdlib.h>

#include "cmd/client.h"
#include "state/figures.h"

enum { MOST = 256 << 20 }; /* bytes of figures */

struct live {
	struct client client;
	struct dl_stat *stat;
	char *text;
};

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	(void)ctx;
	(void)c;
	return m->kind == DL_MSG_ERROR ? client_refused(m, e) : 0;
}

static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct live *v = ctx;

	(void)c;
	if (m->kind != DL_MSG_FIGURES || v->text)
		return dl_fail(e, DL_PROTOCOL, "sends what was not asked for");
	if (h->data_size > MOST)
		return dl_fail(
			e, DL_PROTOCOL, "more figures than there may be");
	*dest = v->text = dl_alloc(h->data_size + 1);
	return 0;
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct live *v = ctx;

	(void)c;
	(void)m;
	if (dl_figures_parse(v->stat, dest, h->data_size, e))
		return dl_at(e, "figures");
	v->client.done = 1;
	return 0;
}

int live_fetch(const struct dl_address *a, enum dl_insecure allowed,
	struct dl_stat *s, struct dl_err *e)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, on_whole};
	static const struct dl_message hello = {
		.kind = DL_MSG_HELLO, .role = DL_ROLE_WATCHER};
	struct live v = {.stat = s};
	int code = client_open(&v.client, a, allowed, &handlers, &v, e);

	if (code)
		return code;
	dl_conn_send(&v.client.conn, &hello);
	code = client_wait(&v.client, e);
	client_close(&v.client);
	free(v.text);
	return code;
}
