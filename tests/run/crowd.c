/*
 * crowd LINK N STEP_US SEED: N learners, each a process, that train nothing:
 * they make a step in so many microseconds and push random deltas for the
 * rounds that are opened, in codecs that differ. Every third one is slow: its
 * pushes come many steps after they were made. They reconnect, and leave when
 * the run is over, or when the one that started them is gone.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/num.h"
#include "base/rng.h"
#include "cmd/client.h"
#include "tensor/coded.h"

enum { TOKENS = 8, WAITING_MAX = 64 };

/* A push that was made and has not gone out. */
struct waiting {
	struct dl_message message;
	uint64_t at; /* own steps by which it goes */
};

struct learner {
	struct client client;
	char name[16];
	uint64_t instance;
	struct dl_rng rng;
	int slow;
	struct dl_quant quant;
	struct dl_layout layout;
	uint64_t clock, steps, tokens;
	/* a fragment each */
	struct dl_version *version;
	uint64_t *seq, *pushed; /* own steps at its last push */
	unsigned char *open, *got;
	struct waiting waiting[WAITING_MAX];
	size_t waitings;
	int welcome, ending, over;
};

static void on_welcome(struct learner *l, const struct dl_message *m)
{
	uint32_t n = m->fragments;

	if (!l->version) {
		if (dl_layout_parse(&l->layout, m->text, m->text_n, NULL))
			exit(65);
		l->version = dl_alloc_array(n, sizeof *l->version);
		l->seq = dl_alloc_array(n, sizeof *l->seq);
		l->pushed = dl_alloc_array(n, sizeof *l->pushed);
		l->open = dl_alloc(n);
		l->got = dl_alloc(n);
	}
	for (uint32_t p = 0; p < n; p++)
		if (!dl_version_cmp(l->version[p], m->origins[p]))
			l->version[p] = m->versions[p];
	memset(l->open, 0, n);
	l->waitings = 0;
	l->clock = m->clock;
	l->welcome = 1;
}

static int on_message(void *ctx, struct dl_conn *c, const struct dl_message *m,
	struct dl_err *e)
{
	struct learner *l = ctx;

	(void)c;
	switch (m->kind) {
	case DL_MSG_ERROR:
		return client_refused(m, e);
	case DL_MSG_WELCOME:
		on_welcome(l, m);
		break;
	case DL_MSG_OPEN:
		l->open[m->fragment] = 1;
		if (l->clock < m->step)
			l->clock = m->step;
		break;
	case DL_MSG_END:
		l->ending = 1;
		memset(l->open, 1, l->layout.fragments);
		break;
	case DL_MSG_BYE:
		l->over = m->bye == DL_BYE_DONE;
		l->client.done = 1;
		break;
	default:
		break;
	}
	return 0;
}

/* What a version holds does not matter here. */
static int on_begin(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	(void)ctx;
	(void)c;
	(void)m;
	(void)h;
	(void)dest;
	(void)e;
	return 0;
}

static int on_whole(void *ctx, struct dl_conn *c, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct learner *l = ctx;

	(void)c;
	(void)h;
	(void)dest;
	(void)e;
	l->version[m->fragment] = m->version;
	l->got[m->fragment] = 1;
	return 0;
}

static void make(struct learner *l, uint32_t p)
{
	struct waiting *w = &l->waiting[l->waitings];
	uint64_t steps = l->steps - l->pushed[p];

	if (!steps || l->waitings == WAITING_MAX)
		return;
	l->waitings++;
	*w = (struct waiting){.message = {.kind = DL_MSG_PUSH,
				      .fragment = p,
				      .seq = ++l->seq[p],
				      .step = l->clock,
				      .base = l->version[p],
				      .steps = steps,
				      .tokens = steps * TOKENS},
		.at = l->steps + (l->slow ? dl_rng_below(&l->rng, 100) : 0)};
	l->pushed[p] = l->steps;
	l->open[p] = 0;
}

static void sent(void *data, int whole)
{
	(void)whole;
	free(data);
}

static void send_push(struct learner *l, const struct dl_message *m)
{
	size_t n = l->layout.fragment[m->fragment].elements;
	size_t bytes = dl_coded_bytes(&l->layout, m->fragment, &l->quant);
	float *delta = dl_alloc_array(n, sizeof *delta);
	struct dl_buf head = DL_BUF_INIT;
	void *data = dl_alloc(bytes);

	for (size_t i = 0; i < n; i++)
		delta[i] = 1e-3f * (float)(dl_rng_uniform(&l->rng) - 0.5);
	dl_coded_encode(NULL, &l->layout, m->fragment, &l->quant, delta, data);
	free(delta);
	dl_message_pack_coded(m, &l->layout, &l->quant, &head);
	dl_conn_send_data(&l->client.conn, 0, &head, data, bytes, sent, data);
}

/* Pushes of a fragment go in the order of their numbers. */
static void send_due(struct learner *l)
{
	size_t left = 0;

	for (size_t i = 0; i < l->waitings; i++) {
		const struct waiting *w = &l->waiting[i];
		int due = l->ending || w->at <= l->steps;

		for (size_t k = 0; k < left; k++)
			due &= l->waiting[k].message.fragment !=
			       w->message.fragment;
		if (due)
			send_push(l, &w->message);
		else
			l->waiting[left++] = *w;
	}
	l->waitings = left;
}

/* The end of a step: what is due goes out, what came is applied. */
static void boundary(struct learner *l)
{
	struct dl_message step = {.kind = DL_MSG_STEP,
		.clock = ++l->clock,
		.steps = ++l->steps,
		.tokens = l->tokens += TOKENS,
		.loss = NAN};

	dl_conn_send(&l->client.conn, &step);
	for (uint32_t p = 0; p < l->layout.fragments; p++) {
		struct dl_message applied = {.kind = DL_MSG_APPLIED,
			.fragment = p,
			.version = l->version[p]};

		if (l->open[p])
			make(l, p);
		if (l->got[p])
			dl_conn_send(&l->client.conn, &applied);
		l->got[p] = 0;
	}
	send_due(l);
	if (l->ending == 1) {
		struct dl_message drained = {
			.kind = DL_MSG_END, .step = l->clock};

		dl_conn_send(&l->client.conn, &drained);
		l->ending = 2;
	}
}

static void turn(void *ctx, int fd, short revents)
{
	struct learner *l = ctx;
	struct client *c = &l->client;

	(void)fd;
	c->over = dl_conn_work(&c->conn, revents, dl_now(), &c->why);
}

static pid_t parent;

static int is_over(const struct learner *l)
{
	return l->over || getppid() != parent;
}

/* One connection, to its end. */
static void train(struct learner *l, int64_t step_ns)
{
	struct client *c = &l->client;
	int64_t at = dl_now() + step_ns;

	while (!c->over && !c->done && !is_over(l)) {
		if (l->welcome && dl_now() >= at) {
			boundary(l);
			at = dl_now() + step_ns;
		}
		turn(l, c->conn.main.fd, 0);
		if (c->over || c->done)
			break;
		dl_loop_set(&c->loop, c->conn.main.fd, dl_conn_events(&c->conn),
			turn, l);
		if (dl_loop_once(&c->loop, l->welcome ? at : INT64_MAX, NULL))
			exit(71);
	}
}

static void visit(
	struct learner *l, const struct dl_address *a, int64_t step_ns)
{
	static const struct dl_conn_handlers handlers = {
		on_message, on_begin, on_whole};
	struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_LEARNER,
		.name = l->name,
		.instance = l->instance,
		.codecs = "f32 int4",
		.clock = l->clock,
		.steps = l->steps,
		.tokens = l->tokens,
		.fragments = l->layout.fragments,
		.versions = l->version};

	l->welcome = l->ending = 0;
	if (!client_open(&l->client, a, DL_INSECURE_NO, &handlers, l, NULL)) {
		dl_conn_send(&l->client.conn, &hello);
		train(l, step_ns);
	} else {
		usleep(20000);
	}
	client_close(&l->client);
}

static int be(
	unsigned i, const struct dl_address *a, int64_t step_ns, uint64_t seed)
{
	static const enum dl_codec codecs[] = {
		DL_CODEC_F32, DL_CODEC_INT4, DL_CODEC_BF16, DL_CODEC_INT8};
	struct learner l = {.rng = {dl_rng_key(seed, i), 0},
		.slow = i % 3 == 2,
		.quant = {.codec = codecs[i % 4], .block = DL_QUANT_BLOCK}};

	snprintf(l.name, sizeof l.name, "l%u", i);
	l.instance = dl_rng_next(&l.rng);
	while (!is_over(&l))
		visit(&l, a, step_ns);
	dl_layout_release(&l.layout);
	free(l.version);
	free(l.seq);
	free(l.pushed);
	free(l.open);
	free(l.got);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t n, step_us, seed;
	struct dl_address a;
	int status, failed = 0;

	if (argc != 5 || dl_address_parse(&a, argv[1], NULL) ||
		dl_parse_u64(argv[2], 1, 64, &n) ||
		dl_parse_u64(argv[3], 1, 1000000, &step_us) ||
		dl_parse_u64(argv[4], 0, UINT64_MAX, &seed))
		return 64;
	parent = getpid();
	for (unsigned i = 0; i < n; i++)
		if (!fork())
			exit(be(i, &a, (int64_t)step_us * 1000, seed));
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
