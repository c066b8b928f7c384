#include "cmd/serve/copy.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/cmd.h"
#include "cmd/fetch/give.h"
#include "cmd/serve/observe.h"
#include "cmd/serve/server.h"
#include "link/errand.h"
#include "state/checkpoint.h"

struct copy {
	struct dl_errand errand;
	struct server *server;
	struct peer *peer; /* NULL: it has gone */
	int packing;
	struct dl_pin *pin;
	int64_t made;
	int fd;
	struct dl_err why; /* of packing; code 0: it went well */
	struct give *give; /* NULL while it is packed */
};

static void done_with(struct copy *c)
{
	c->server->copy = NULL;
	give_free(c->give);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

void copy_leave(struct peer *peer)
{
	struct copy *c = peer->copy;

	if (!c)
		return;
	peer->copy = NULL;
	c->peer = NULL;
	if (c->packing)
		dl_checkpoint_abandon(c->pin);
	else
		done_with(c);
}

/* A file of the store's folder, whose name is gone before anything is in it. */
static int open_file(const char *store, int *fd, struct dl_err *e)
{
	char *path = dl_sprintf("%s/copy.XXXXXX", store);
	int code = 0;

	*fd = mkostemp(path, O_CLOEXEC);
	if (*fd < 0 || unlink(path))
		code = dl_fail_sys(e, DL_CANTCREAT, "%s", path);
	free(path);
	return code;
}

static void pack(struct dl_errand *errand)
{
	struct copy *c = (void *)errand;

	dl_checkpoint_pack(c->pin, c->made, c->fd, &c->why);
}

/* It can be fetched. */
static int offer(struct copy *c, struct dl_err *e)
{
	struct peer *peer = c->peer;
	struct dl_message state = {
		.kind = DL_MSG_STATE, .clock = dl_pin_saved(c->pin)->clock};
	struct stat st;

	if (fstat(c->fd, &st))
		return dl_fail_sys(e, DL_IOERR, "a checkpoint");
	state.bytes = (uint64_t)st.st_size;
	c->give =
		give_new(&peer->conn, c->server->reader, c->fd, state.bytes, e);
	if (!c->give)
		return e->code;
	/* From now on what goes out shows whether it takes anything. */
	peer->conn.config.beat_ns = 0;
	peer->deadline = dl_now() + observe_patience(c->server);
	dl_conn_send(&peer->conn, &state);
	return 0;
}

static void refuse(struct peer *peer, const struct dl_err *why, int64_t now)
{
	cmd_warn("%s: no checkpoint for %s", why->text, peer->address);
	peer_refuse(peer, DL_TEMPFAIL, "the checkpoint cannot be made", now);
}

static void packed(struct dl_errand *errand)
{
	struct copy *c = (void *)errand;
	int wanted = c->peer && c->peer->state == PEER_CHECKPOINT;

	c->packing = 0;
	if (!errand->dropped && wanted && !c->why.code)
		offer(c, &c->why);
	dl_store_unpin(c->server->globals.store, c->pin);
	if (!errand->dropped && wanted && c->why.code)
		refuse(c->peer, &c->why, dl_now());
	if (!c->peer)
		done_with(c);
}

static int start(struct copy *c, struct dl_err *e)
{
	struct server *s = c->server;

	if (!s->packer)
		s->packer = dl_errands_new(&s->loop, e);
	if (s->packer && !s->reader)
		s->reader = dl_errands_new(&s->loop, e);
	if (!s->reader)
		return e->code;
	if (open_file(s->options->sync.store, &c->fd, e))
		return e->code;
	c->pin = dl_store_pin(s->globals.store);
	c->made = dl_wall();
	c->packing = 1;
	c->errand = (struct dl_errand){.run = pack, .done = packed};
	dl_errands_add(s->packer, &c->errand);
	return 0;
}

void copy_begin(struct peer *peer, int64_t now)
{
	struct server *s = peer->server;
	struct dl_err e;
	struct copy *c;

	if (s->copy) {
		peer_refuse(peer, DL_TEMPFAIL,
			"another takes a checkpoint, try later", now);
		return;
	}
	c = s->copy = dl_alloc(sizeof *c);
	*c = (struct copy){.server = s, .peer = peer, .fd = -1};
	if (start(c, &e)) {
		done_with(c);
		refuse(peer, &e, now);
		return;
	}
	peer->copy = c;
	peer->state = PEER_CHECKPOINT;
	peer->deadline = INT64_MAX;
	cmd_note("%s%s%s takes a checkpoint", peer->name,
		*peer->name ? " at " : "", peer->address);
	peer_send_welcome(peer, dl_sync_clock(s->core));
}

int copy_fetch(struct peer *peer, const struct dl_message *m, struct dl_err *e)
{
	return peer->copy->give ? give_fetch(peer->copy->give, m, e)
				: dl_fail(e, DL_PROTOCOL, "fetch before state");
}

void copy_work(struct peer *peer, int64_t now)
{
	struct give *give = peer->copy->give;
	uint64_t out = dl_conn_bytes_out(&peer->conn);
	struct dl_err e;

	if (!give)
		return;
	if (give_failed(give, &e)) {
		refuse(peer, &e, now);
	} else if (out != peer->out) {
		peer->out = out;
		peer->deadline = now + observe_patience(peer->server);
	} else if (now >= peer->deadline) {
		dl_fail(&e, DL_TEMPFAIL, "takes nothing");
		gate_note(peer->server, "%s is sent away: %s", peer->address,
			e.text);
		peer_drop(peer, &e);
	}
}
