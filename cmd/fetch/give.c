#include "cmd/fetch/give.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

enum { AHEAD = 2 }; /* one is read while another is sent */

struct asked {
	uint64_t offset;
	size_t bytes;
};

/* A piece of the file on its way. */
struct piece {
	struct dl_errand errand;
	struct give *give;
	int taken; /* it is being read or sent */
	struct asked asked;
	unsigned char *data; /* DL_FETCH_BYTES */
	char hash[DL_HASH_HEX];
	int code; /* why it could not be read */
	struct dl_err why;
};

struct give {
	struct dl_conn *conn; /* NULL: it has been given up */
	struct dl_errands *errands;
	int fd;
	uint64_t size, sent;
	struct asked asked[DL_FETCHES]; /* those not begun, from first on */
	unsigned first, waiting;
	struct piece piece[AHEAD];
	unsigned busy; /* pieces that are taken */
	int code;
	struct dl_err why;
};

struct give *give_new(struct dl_conn *c, struct dl_errands *errands, int fd,
	uint64_t size, struct dl_err *e)
{
	struct give *g = dl_alloc(sizeof *g);

	*g = (struct give){.conn = c, .errands = errands, .size = size};
	g->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (g->fd >= 0)
		return g;
	dl_fail_sys(e, DL_OSERR, "one more descriptor");
	free(g);
	return NULL;
}

static void destroy(struct give *g)
{
	for (int i = 0; i < AHEAD; i++)
		free(g->piece[i].data);
	close(g->fd);
	free(g);
}

void give_free(struct give *g)
{
	if (!g)
		return;
	g->conn = NULL;
	if (!g->busy)
		destroy(g);
}

static void read_piece(struct dl_errand *errand)
{
	struct piece *p = (void *)errand;
	const struct asked *a = &p->asked;
	struct dl_hash hash;
	ssize_t n = dl_pread_full(p->give->fd, p->data, a->bytes, a->offset);

	if (n < 0)
		p->code = dl_fail_sys(&p->why, DL_IOERR, "reading it");
	else if ((size_t)n < a->bytes)
		p->code =
			dl_fail(&p->why, DL_IOERR, "it is shorter than it was");
	if (p->code)
		return;
	dl_hash_init(&hash);
	dl_hash_add(&hash, p->data, a->bytes);
	dl_hash_hex(&hash, p->hash);
}

static void begin_more(struct give *g);

static void put_back(struct piece *p)
{
	struct give *g = p->give;

	p->taken = 0;
	g->busy--;
	if (g->conn)
		begin_more(g);
	else if (!g->busy)
		destroy(g);
}

static void on_sent(void *ctx, int whole)
{
	struct piece *p = ctx;

	if (whole)
		p->give->sent += p->asked.bytes;
	put_back(p);
}

static void send_piece(struct dl_errand *errand)
{
	struct piece *p = (void *)errand;
	struct give *g = p->give;
	struct dl_message m = {.kind = DL_MSG_PART,
		.offset = p->asked.offset,
		.hash = p->hash};
	struct dl_buf head = DL_BUF_INIT;

	if (p->code && !g->code) {
		g->code = p->code;
		g->why = p->why;
	}
	if (!g->conn || errand->dropped || g->code) {
		put_back(p);
		return;
	}
	dl_message_pack_part(&m, p->asked.bytes, &head);
	dl_conn_send_data(
		g->conn, 0, &head, p->data, p->asked.bytes, on_sent, p);
}

static void begin(struct give *g, struct piece *p)
{
	p->errand = (struct dl_errand){.run = read_piece, .done = send_piece};
	p->give = g;
	p->taken = 1;
	p->code = 0;
	p->asked = g->asked[g->first];
	if (!p->data)
		p->data = dl_alloc(DL_FETCH_BYTES);
	g->first = (g->first + 1) % DL_FETCHES;
	g->waiting--;
	g->busy++;
	dl_errands_add(g->errands, &p->errand);
}

/* Reads what was asked for, as far as there is memory to read it into. */
static void begin_more(struct give *g)
{
	for (int i = 0; i < AHEAD && g->waiting && !g->code; i++)
		if (!g->piece[i].taken)
			begin(g, &g->piece[i]);
}

int give_fetch(struct give *g, const struct dl_message *m, struct dl_err *e)
{
	if (m->bytes > DL_FETCH_BYTES || m->offset >= g->size ||
		m->bytes > g->size - m->offset)
		return dl_fail(e, DL_PROTOCOL,
			"fetches %llu bytes at %llu of %llu",
			(unsigned long long)m->bytes,
			(unsigned long long)m->offset,
			(unsigned long long)g->size);
	if (g->waiting + g->busy >= DL_FETCHES)
		return dl_fail(e, DL_PROTOCOL, "more than %d fetches at once",
			DL_FETCHES);
	g->asked[(g->first + g->waiting) % DL_FETCHES] =
		(struct asked){m->offset, (size_t)m->bytes};
	g->waiting++;
	begin_more(g);
	return 0;
}

int give_failed(const struct give *g, struct dl_err *e)
{
	if (g->code && e)
		*e = g->why;
	return g->code;
}

uint64_t give_sent(const struct give *g)
{
	return g->sent;
}
