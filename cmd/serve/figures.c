#include "cmd/serve/figures.h"

#include <stdlib.h>

#include "base/num.h"
#include "cmd/serve/observe.h"
#include "cmd/serve/server.h"
#include "state/figures.h"

static const int64_t fresh = DL_SECOND;

struct figures {
	struct dl_buf text;
	int64_t made;
	unsigned holders; /* the server, and each peer that is sent them */
};

static void let_go(struct figures *f)
{
	if (!f || --f->holders)
		return;
	dl_buf_free(&f->text);
	free(f);
}

static struct figures *look(struct server *s, int64_t now)
{
	struct figures *f = s->figures;

	if (f && now - f->made < fresh)
		return f;
	let_go(f);
	f = dl_alloc(sizeof *f);
	f->made = now;
	f->holders = 1;
	dl_stat_at(&s->stat, now, dl_wall());
	dl_stat_settle(&s->stat);
	dl_figures_write(&f->text, &s->stat);
	s->figures = f;
	return f;
}

static void on_sent(void *ctx, int sent)
{
	(void)sent;
	let_go(ctx);
}

void figures_begin(struct peer *peer, int64_t now)
{
	struct dl_message m = {.kind = DL_MSG_FIGURES};
	struct figures *f = look(peer->server, now);
	struct dl_buf head = DL_BUF_INIT;

	peer->state = PEER_OBSERVER;
	peer->deadline = now + observe_patience(peer->server);
	f->holders++;
	dl_message_pack_part(&m, f->text.len, &head);
	dl_conn_send_data(
		&peer->conn, 0, &head, f->text.data, f->text.len, on_sent, f);
	dl_conn_finish(&peer->conn, INT64_MAX);
}

void figures_free(struct server *s)
{
	let_go(s->figures);
	s->figures = NULL;
}
