#include "train/trainer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/num.h"
#include "train/lead.h"
#include "train/store.h"

enum { LINE = 8192, WORDS = 6 };

/* What a line led to. */
enum next { STAY, GO, STOP };

static int dial(const char *path, int *fd, struct dl_err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(a.sun_path))
		return dl_fail(e, DL_USAGE, "%s: too long for a socket", path);
	strcpy(a.sun_path, path);
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return dl_fail_sys(e, DL_OSERR, "socket");
	if (!connect(*fd, (struct sockaddr *)&a, sizeof(a)))
		return 0;
	close(*fd);
	return dl_fail_sys(e, DL_UNAVAILABLE, "%s", path);
}

/* A learner that is gone is noticed where its next line is awaited. */
static void flush(struct dl_trainer *t)
{
	while (t->out.len) {
		ssize_t k = send(t->fd, t->out.data, t->out.len, MSG_NOSIGNAL);

		if (k < 0 && errno != EINTR)
			dl_buf_clear(&t->out);
		if (k > 0)
			dl_buf_drop(&t->out, (size_t)k);
	}
}

/* Answers go out together, when there is no other order to obey: each would
 * wake the learner, which might take this processor to read it. */
__attribute__((format(printf, 2, 3))) static void say(
	struct dl_trainer *t, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	dl_buf_str(&t->out, line);
	dl_buf_byte(&t->out, '\n');
}

/* The next line, without its end; NULL at the end of input or when told to
 * stop. Valid until the next call. */
static char *hear(struct dl_trainer *t, char line[LINE])
{
	for (;;) {
		unsigned char *end =
			t->in.len ? memchr(t->in.data, '\n', t->in.len) : NULL;
		ssize_t n;

		if (end) {
			size_t len = (size_t)(end - t->in.data);

			memcpy(line, t->in.data, len);
			line[len] = '\0';
			dl_buf_drop(&t->in, len + 1);
			return line;
		}
		flush(t);
		if (t->in.len >= LINE || *t->stop)
			return NULL;
		dl_buf_reserve(&t->in, LINE);
		n = read(t->fd, t->in.data + t->in.len, LINE - t->in.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		t->in.len += (size_t)n;
	}
}

static int bad_words(const char *verb, struct dl_err *e)
{
	return dl_fail(e, DL_PROTOCOL, "%s: not as dl-trainer(7) has it", verb);
}

static int fragment(
	struct dl_trainer *t, const char *word, uint32_t *p, struct dl_err *e)
{
	uint64_t n;

	if (!t->fragments)
		return dl_fail(e, DL_USAGE, "no layout: DL_LAYOUT is not set");
	if (dl_parse_u64(word, 0, UINT32_MAX, &n))
		return dl_fail(e, DL_PROTOCOL, "not a fragment's number");
	*p = (uint32_t)n;
	return 0;
}

static void pass_on(void *ctx, size_t at, size_t n)
{
	dl_lead_values(ctx, at, n);
}

static int apply(struct dl_trainer *t, char **w, size_t n, struct dl_err *e)
{
	float keep, add;
	uint32_t p;
	double a;
	int rc = fragment(t, w[1], &p, e);

	if (rc)
		return rc;
	if (n == 4 && !strcmp(w[3], "set")) {
		keep = 0;
		add = 1;
	} else if (n == 4 && !strcmp(w[3], "add")) {
		keep = 1;
		add = 1;
	} else if (n == 5 && !strcmp(w[3], "blend") &&
		   !dl_parse_double(w[4], 0, 1, &a)) {
		keep = (float)a;
		add = (float)(1 - a);
	} else {
		return bad_words("apply", e);
	}
	rc = dl_fragments_apply(
		t->fragments, p, w[2], keep, add, t->training->values, e);
	if (!rc)
		dl_fragments_visit(t->fragments, p, pass_on, t->training);
	return rc;
}

static int load(struct dl_training *t, const char *path, struct dl_err *e)
{
	int rc = dl_store_read_model(t->m, path, t->values, e);

	if (!rc)
		dl_lead_values(t, 0, t->m->size);
	return rc;
}

static int restore(struct dl_training *t, const char *path, struct dl_err *e)
{
	int rc = dl_store_restore(t, path, e);

	if (!rc)
		dl_lead_state(t);
	return rc;
}

static int set_clock(struct dl_trainer *t, char **w, size_t n, struct dl_err *e)
{
	uint64_t clock;

	if (dl_parse_u64(w[1], 0, UINT64_MAX >> 1, &clock) ||
		(n == 3 && strcmp(w[2], "fresh")))
		return bad_words("clock", e);
	t->training->clock = clock;
	if (n == 3) {
		dl_adamw_restart(&t->training->adamw, clock);
		dl_lead_state(t->training);
	}
	return 0;
}

/* Obeys n words; the first has been found to be a verb with as many. */
static int obey(struct dl_trainer *t, char **w, size_t n, struct dl_err *e)
{
	struct dl_training *training = t->training;
	uint32_t p;
	int rc;

	if (!strcmp(w[0], "load"))
		return load(training, w[1], e);
	if (!strcmp(w[0], "send")) {
		rc = fragment(t, w[1], &p, e);
		return rc ? rc
			  : dl_fragments_send(
				    t->fragments, p, training->values, w[2], e);
	}
	if (!strcmp(w[0], "apply"))
		return apply(t, w, n, e);
	if (!strcmp(w[0], "save"))
		return dl_store_save_scratch(training, w[1], e);
	if (!strcmp(w[0], "prepare"))
		return dl_export_prepare(&t->export, w[1], e);
	if (!strcmp(w[0], "export"))
		return dl_export_write(&t->export, training, w[1], e);
	if (!strcmp(w[0], "restore") || !strcmp(w[0], "import"))
		return restore(training, w[1], e);
	return set_clock(t, w, n, e);
}

static enum next answer(struct dl_trainer *t, char *line)
{
	static const struct {
		const char *name;
		size_t least, most; /* words, itself included */
	} verbs[] = {{"load", 2, 2}, {"send", 3, 3}, {"apply", 4, 5},
		{"save", 2, 2}, {"restore", 2, 2}, {"prepare", 2, 2},
		{"export", 2, 2}, {"import", 2, 2}, {"clock", 2, 3},
		{"go", 1, 1}, {"stop", 1, 1}};
	char *w[WORDS], *rest = line;
	struct dl_err e;
	size_t n = 0, i = 0;

	while (n < WORDS && (w[n] = strtok_r(NULL, " ", &rest)))
		n++;
	while (i < sizeof(verbs) / sizeof(*verbs) && n &&
		strcmp(w[0], verbs[i].name))
		i++;
	if (!n || i == sizeof(verbs) / sizeof(*verbs)) {
		say(t, "error no such order");
		return STAY;
	}
	if (n < verbs[i].least || n > verbs[i].most) {
		say(t, "error %s: not as dl-trainer(7) has it", w[0]);
		return STAY;
	}
	if (!strcmp(w[0], "go"))
		return GO;
	if (!strcmp(w[0], "stop")) {
		say(t, "ok");
		return STOP;
	}
	if (obey(t, w, n, &e))
		say(t, "error %s", e.text);
	else
		say(t, "ok");
	return STAY;
}

/* What is shown after a step is not lost on the learner. */
static void step(struct dl_trainer *t)
{
	int64_t from;
	double loss;

	flush(t);
	from = dl_now();
	if (!t->began)
		t->began = t->boundary = from;
	t->lost += from - t->boundary;
	loss = dl_training_step(t->training);
	dl_pace_wait(t->pace);
	from = dl_now();
	t->spent = from - t->began;
	t->steps++;
	say(t, "step %zu %.6f", dl_training_step_tokens(t->training), loss);
	flush(t);
	t->lost += dl_now() - from;
	t->stepped(t->ctx, loss);
	t->boundary = dl_now();
}

static void serve(struct dl_trainer *t)
{
	char line[LINE];

	say(t, "ready 1");
	while (!*t->stop && hear(t, line)) {
		enum next next = answer(t, line);

		if (next == STOP)
			return;
		if (next == GO)
			step(t);
	}
}

int dl_trainer_run(struct dl_trainer *t, const char *path, struct dl_err *e)
{
	int rc = dial(path, &t->fd, e);

	if (rc)
		return rc;
	t->export = (struct dl_export)DL_EXPORT_INIT;
	serve(t);
	flush(t);
	dl_export_release(&t->export);
	close(t->fd);
	dl_buf_free(&t->in);
	dl_buf_free(&t->out);
	return 0;
}
