#include "crew.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/spawn.h"
#include "bench.h"
#include "cmd/client.h"
#include "link/door.h"
#include "tensor/coded.h"

struct member {
	struct crew *crew;
	struct client client;
	char name[16];
	uint64_t seq;
	int welcome;
	unsigned got; /* globals of this crew_sync */
};

struct crew {
	struct crew *next;
	struct crew_options options;
	struct dl_quant quant;
	struct dl_layout layout;
	struct dl_address address;
	char *folder, *link;
	pid_t syncer;
	struct member *member;
	struct pollfd *poll; /* a learner each */
	unsigned n;
	struct dl_version *version; /* a fragment; the same for all */
	uint64_t clock;
	unsigned char *push, *global; /* the data of a record */
	size_t push_bytes, global_bytes;
	int64_t first; /* when the first global began to come */
};

static char *path_in(const struct crew *c, const char *name)
{
	return dl_sprintf("%s/%s", c->folder, name);
}

/* A model of one tensor a fragment. */
static void write_model(const struct crew *c)
{
	const uint64_t shape = c->options.elements;
	size_t size = shape * sizeof(float);
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf head = DL_BUF_INIT;
	char *path = path_in(c, "model"), name[16];
	void *zeros = dl_alloc(size);
	FILE *f = fopen(path, "w");
	int fine = f != NULL;

	for (uint32_t p = 0; p < c->options.fragments; p++) {
		int n = snprintf(name, sizeof name, "t%03u", p);

		dl_writer_tensor(&w, name, (size_t)n, DL_F32, 1, &shape);
	}
	dl_writer_finish(&w, &head, NULL);
	fine = fine && fwrite(head.data, head.len, 1, f) == 1;
	for (uint32_t p = 0; p < c->options.fragments; p++)
		fine = fine && fwrite(zeros, size, 1, f) == 1;
	bench_need(fine && !fclose(f), path);
	dl_writer_release(&w);
	dl_buf_free(&head);
	free(zeros);
	free(path);
}

static struct crew *crews; /* those there are */

/* A bench that fails leaves nothing behind. */
static void free_all(void)
{
	while (crews)
		crew_free(crews);
}

static void start_syncer(struct crew *c)
{
	char sh[] = "sh", opt[] = "-c";
	char *commit = c->options.commit
			       ? dl_sprintf("--commit %u", c->options.commit)
			       : NULL;
	char *line = dl_sprintf("exec ./dl-sync serve -q --insecure --dead 1h "
				"--store '%s/store' --tape '%s/tape' "
				"--listen %s --fragments %u -H %u --quorum %u "
				"--min-h 0 --global %s %s '%s/model'",
		c->folder, c->folder, c->link, c->options.fragments,
		c->options.fragments, c->options.learners,
		dl_codec_name(c->options.codec), commit ? commit : "",
		c->folder);
	char *const command[] = {sh, opt, line, NULL};
	extern char **environ;
	struct dl_err e;

	bench_need(!dl_spawn(command, environ, NULL, &c->syncer, &e), e.text);
	free(commit);
	free(line);
}

static void send_push(struct member *m, uint32_t p, uint64_t step)
{
	struct crew *c = m->crew;
	const struct dl_message push = {.kind = DL_MSG_PUSH,
		.fragment = p,
		.seq = ++m->seq,
		.step = step,
		.base = c->version[p],
		.steps = 1,
		.tokens = 1};
	struct dl_buf head = DL_BUF_INIT;

	if (c->options.codec == DL_CODEC_F32)
		dl_message_pack_data(&push, &c->layout, &head);
	else
		dl_message_pack_coded(&push, &c->layout, &c->quant, &head);
	dl_conn_send_data(
		&m->client.conn, 0, &head, c->push, c->push_bytes, NULL, NULL);
}

static void on_welcome(struct member *m, const struct dl_message *w)
{
	struct crew *c = m->crew;
	struct dl_err e;

	m->welcome = 1;
	if (c->version)
		return;
	bench_need(
		!dl_layout_parse(&c->layout, w->text, w->text_n, &e), e.text);
	c->version = dl_alloc_array(w->fragments, sizeof *c->version);
	memcpy(c->version, w->versions, w->fragments * sizeof *c->version);
}

static int on_message(void *ctx, struct dl_conn *conn,
	const struct dl_message *m, struct dl_err *e)
{
	struct member *member = ctx;

	(void)conn;
	if (m->kind == DL_MSG_ERROR)
		return client_refused(m, e);
	if (m->kind == DL_MSG_TAKEN && m->taken == DL_TAKEN_REFUSED)
		return dl_fail(e, DL_DATA, "a push was refused");
	if (m->kind == DL_MSG_WELCOME)
		on_welcome(member, m);
	if (m->kind == DL_MSG_OPEN)
		send_push(member, m->fragment, m->step);
	return 0;
}

static int on_begin(void *ctx, struct dl_conn *conn, const struct dl_message *m,
	const struct dl_header *h, void **dest, struct dl_err *e)
{
	struct crew *c = ((struct member *)ctx)->crew;

	(void)conn;
	(void)m;
	if (!c->first)
		c->first = dl_now();
	if (h->data_size > c->global_bytes)
		return dl_fail(e, DL_DATA, "a global is too large");
	*dest = c->global;
	return 0;
}

static int on_whole(void *ctx, struct dl_conn *conn, const struct dl_message *m,
	const struct dl_header *h, void *dest, struct dl_err *e)
{
	struct member *member = ctx;
	const struct dl_message applied = {.kind = DL_MSG_APPLIED,
		.fragment = m->fragment,
		.version = m->version};

	(void)h;
	(void)dest;
	(void)e;
	member->got++;
	if (member == &member->crew->member[member->crew->n - 1])
		member->crew->version[m->fragment] = m->version;
	dl_conn_send(conn, &applied);
	return 0;
}

static const struct dl_conn_handlers handlers = {
	on_message, on_begin, on_whole};

static void join(struct member *m)
{
	const struct dl_message hello = {.kind = DL_MSG_HELLO,
		.role = DL_ROLE_LEARNER,
		.name = m->name,
		.instance = 1,
		.codecs = dl_codec_name(m->crew->options.codec)};
	struct dl_err e;

	for (int tries = 0;; tries++) {
		if (!client_open(&m->client, &m->crew->address,
			    DL_INSECURE_LOOPBACK, &handlers, m, &e))
			break;
		bench_need(tries < 500, e.text);
		usleep(20000);
	}
	m->client.conn.config.silence_ns = 0;
	m->client.conn.config.beat_ns = 2 * DL_SECOND;
	dl_conn_send(&m->client.conn, &hello);
}

/* Works until each has had so many globals, or is welcome. */
static int is_done(const struct crew *c, unsigned globals)
{
	for (unsigned i = 0; i < c->n; i++)
		if (!c->member[i].welcome || c->member[i].got < globals)
			return 0;
	return 1;
}

static void turn(struct crew *c, int wait_ms)
{
	struct dl_err e;

	for (unsigned i = 0; i < c->n; i++) {
		struct dl_conn *conn = &c->member[i].client.conn;

		c->poll[i] =
			(struct pollfd){conn->main.fd, dl_conn_events(conn), 0};
	}
	bench_need(poll(c->poll, c->n, wait_ms) >= 0, "poll");
	for (unsigned i = 0; i < c->n; i++)
		bench_need(!dl_conn_work(&c->member[i].client.conn,
				   c->poll[i].revents, dl_now(), &e),
			e.text);
}

static void work(struct crew *c, unsigned globals)
{
	int64_t patience = dl_now() + 300 * DL_SECOND;

	while (!is_done(c, globals)) {
		turn(c, 1000);
		bench_need(dl_now() < patience, "the syncer says nothing");
	}
}

void crew_idle(struct crew *c, double seconds)
{
	int64_t end = dl_now() + (int64_t)(seconds * 1e9);

	while (dl_now() < end)
		turn(c, 100);
}

static void make_push(struct crew *c)
{
	size_t n = c->options.elements;
	float *delta = dl_alloc_array(n, sizeof *delta);
	struct dl_rng r = {1, 0};

	for (size_t i = 0; i < n; i++)
		delta[i] = (float)(dl_rng_uniform(&r) - 0.5) * 1e-3f;
	c->push_bytes = dl_coded_bytes(&c->layout, 0, &c->quant);
	c->push = dl_big_alloc(c->push_bytes);
	dl_coded_encode(NULL, &c->layout, 0, &c->quant, delta, c->push);
	free(delta);
}

struct crew *crew_new(const struct crew_options *o)
{
	struct crew *c = dl_alloc(sizeof *c);
	static unsigned count;
	struct dl_err e;

	c->options = *o;
	c->member = dl_alloc_array(o->learners, sizeof *c->member);
	c->poll = dl_alloc_array(o->learners, sizeof *c->poll);
	c->quant =
		(struct dl_quant){.codec = o->codec, .block = DL_QUANT_BLOCK};
	c->folder = dl_strdup("/dev/shm/sync-bench-XXXXXX");
	bench_need(mkdtemp(c->folder) != NULL, c->folder);
	c->link = dl_sprintf("tcp:127.0.0.1:%u",
		20000 + (unsigned)(getpid() % 20000) + count);
	bench_need(!dl_address_parse(&c->address, c->link, &e), e.text);
	c->global_bytes = o->elements * sizeof(float);
	c->global = dl_big_alloc(c->global_bytes);
	c->next = crews;
	crews = c;
	if (!count++)
		atexit(free_all);
	write_model(c);
	start_syncer(c);
	/* One by one, and not too many at once: a syncer lets few in who have
	 * not said who they are, and few from one source. */
	while (c->n < o->learners) {
		struct member *m = &c->member[c->n];

		m->crew = c;
		snprintf(m->name, sizeof m->name, "l%u", c->n);
		join(m);
		c->n++;
		work(c, 0);
		if (c->n >= DL_DOOR_BURST)
			crew_idle(c, 1.0 / DL_DOOR_RATE);
	}
	make_push(c);
	return c;
}

double crew_sync(struct crew *c)
{
	double from = bench_now(), others = crew_cost(c).cpu;

	c->first = 0;
	for (unsigned i = 0; i < c->n; i++)
		c->member[i].got = 0;
	for (uint32_t k = 1; k <= c->options.fragments; k++)
		for (unsigned i = 0; i < c->n; i++) {
			const struct dl_message step = {.kind = DL_MSG_STEP,
				.clock = c->clock + k,
				.steps = c->clock + k,
				.tokens = c->clock + k,
				.loss = NAN};

			dl_conn_send(&c->member[i].client.conn, &step);
		}
	c->clock += c->options.fragments;
	work(c, c->options.fragments);
	return bench_now() - from + bench_others(crew_cost(c).cpu - others);
}

/* When the last push was whole, as the tape has it. */
static int64_t last_push(const struct crew *c)
{
	static const char push[] = "{\"event\":\"push\"", now[] = "\"now\":";
	char *path = path_in(c, "tape"), *line = NULL;
	FILE *f = fopen(path, "r");
	size_t room = 0;
	int64_t at = 0;

	bench_need(f != NULL, path);
	while (getline(&line, &room, f) > 0)
		if (!strncmp(line, push, strlen(push)) && strstr(line, now))
			at = strtoll(strstr(line, now) + strlen(now), NULL, 10);
	fclose(f);
	free(line);
	free(path);
	return at;
}

double crew_latency(struct crew *c)
{
	return (double)(c->first - last_push(c)) * 1e-9;
}

struct crew_cost crew_cost(const struct crew *c)
{
	char *path = dl_sprintf("/proc/%ld/stat", (long)c->syncer);
	struct crew_cost cost = {0, 0};
	FILE *f = fopen(path, "r");
	struct timespec cpu;
	clockid_t clock;

	bench_need(f &&
			   fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %ld",
				   &cost.faults) == 1 &&
			   !clock_getcpuclockid(c->syncer, &clock) &&
			   !clock_gettime(clock, &cpu),
		path);
	cost.cpu = (double)cpu.tv_sec + (double)cpu.tv_nsec * 1e-9;
	fclose(f);
	free(path);
	return cost;
}

void crew_free(struct crew *c)
{
	char *command = dl_sprintf("rm -rf '%s'", c->folder);
	struct crew **at = &crews;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	if (c->syncer) {
		kill(c->syncer, SIGKILL);
		waitpid(c->syncer, NULL, 0);
	}
	for (unsigned i = 0; i < c->n; i++)
		client_close(&c->member[i].client);
	if (system(command))
		fprintf(stderr, "bench: %s is still there\n", c->folder);
	dl_big_free(c->push, c->push_bytes);
	dl_big_free(c->global, c->global_bytes);
	dl_layout_release(&c->layout);
	free(c->version);
	free(c->folder);
	free(c->link);
	free(command);
	free(c->member);
	free(c->poll);
	free(c);
}
