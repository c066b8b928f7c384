/*
 * Any bytes as orders to dl-train's side of dl-trainer(7): each is answered,
 * once, by a line that a learner takes. What orders do to files and values is
 * not done here, and the answers go into a buffer.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "train/line.h"
#include "train/store.h"
#include "train/trainer.h"

enum { LONGEST = 65536 }; /* input, less than a socket holds */

static const uint8_t *input;
static size_t input_n;
static struct dl_buf said;

int __wrap_connect(int fd, const struct sockaddr *a, socklen_t n);
ssize_t __wrap_send(int fd, const void *p, size_t n, int flags);
int __wrap_dl_store_read_model(const struct dl_llama *m, const char *path,
	float *values, struct dl_err *e);
int __wrap_dl_store_save_scratch(
	const struct dl_training *t, const char *path, struct dl_err *e);
int __wrap_dl_export_prepare(
	struct dl_export *x, const char *path, struct dl_err *e);
int __wrap_dl_export_write(struct dl_export *x, const struct dl_training *t,
	const char *path, struct dl_err *e);
int __wrap_dl_store_restore(
	struct dl_training *t, const char *path, struct dl_err *e);
int __wrap_dl_fragments_send(const struct dl_fragments *f, uint32_t p,
	const float *values, const char *path, struct dl_err *e);
int __wrap_dl_fragments_apply(struct dl_fragments *f, uint32_t p,
	const char *path, float keep, float add, float *values,
	struct dl_err *e);
void __wrap_dl_adamw_restart(struct dl_adamw *a, uint64_t clock);
double __wrap_dl_training_step(struct dl_training *t);
size_t __wrap_dl_training_step_tokens(const struct dl_training *t);

/* The learner at the other end says all of the input and closes its side. */
int __wrap_connect(int fd, const struct sockaddr *a, socklen_t n)
{
	int pair[2];

	(void)a;
	(void)n;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
		write(pair[1], input, input_n) != (ssize_t)input_n ||
		dup2(pair[0], fd) != fd)
		abort();
	close(pair[0]);
	close(pair[1]);
	return 0;
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	(void)fd;
	(void)flags;
	dl_buf_add(&said, p, n);
	return (ssize_t)n;
}

/* No file that an order names is there. */
static int no_file(const char *path, struct dl_err *e)
{
	return dl_fail(e, DL_NOINPUT, "%s: No such file", path);
}

int __wrap_dl_store_read_model(const struct dl_llama *m, const char *path,
	float *values, struct dl_err *e)
{
	(void)m;
	(void)values;
	return no_file(path, e);
}

int __wrap_dl_store_save_scratch(
	const struct dl_training *t, const char *path, struct dl_err *e)
{
	(void)t;
	(void)path;
	(void)e;
	return 0;
}

int __wrap_dl_export_prepare(
	struct dl_export *x, const char *path, struct dl_err *e)
{
	(void)x;
	return no_file(path, e);
}

int __wrap_dl_export_write(struct dl_export *x, const struct dl_training *t,
	const char *path, struct dl_err *e)
{
	(void)x;
	(void)t;
	(void)path;
	(void)e;
	return 0;
}

int __wrap_dl_store_restore(
	struct dl_training *t, const char *path, struct dl_err *e)
{
	(void)t;
	return no_file(path, e);
}

int __wrap_dl_fragments_send(const struct dl_fragments *f, uint32_t p,
	const float *values, const char *path, struct dl_err *e)
{
	(void)f;
	(void)p;
	(void)values;
	(void)path;
	(void)e;
	return 0;
}

int __wrap_dl_fragments_apply(struct dl_fragments *f, uint32_t p,
	const char *path, float keep, float add, float *values,
	struct dl_err *e)
{
	(void)f;
	(void)p;
	(void)values;
	if (!(keep >= 0 && keep <= 1 && add >= 0 && add <= 1))
		abort();
	return no_file(path, e);
}

void __wrap_dl_adamw_restart(struct dl_adamw *a, uint64_t clock)
{
	a->since = clock;
}

double __wrap_dl_training_step(struct dl_training *t)
{
	t->clock++;
	return 5.5;
}

size_t __wrap_dl_training_step_tokens(const struct dl_training *t)
{
	(void)t;
	return 768;
}

static void stepped(void *ctx, double loss)
{
	(void)ctx;
	(void)loss;
}

static size_t count_lines(const uint8_t *p, size_t n)
{
	size_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += p[i] == '\n';
	return lines;
}

static void check_answers(void)
{
	const uint8_t *at = said.data, *end = said.data + said.len;
	struct dl_line line;

	while (at < end) {
		const uint8_t *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop || dl_line_parse(&line, (const char *)at,
				     (size_t)(stop - at), NULL))
			abort();
		if ((line.kind == DL_LINE_READY) != (at == said.data))
			abort();
		at = stop + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const volatile sig_atomic_t on;
	struct dl_training training = {0};
	struct dl_fragments fragments = {0};
	struct dl_pace pace = {0};
	struct dl_trainer t = {
		.training = &training,
		.fragments = n % 8 ? &fragments : NULL,
		.pace = &pace,
		.stop = &on,
		.stepped = stepped,
	};

	if (n > LONGEST)
		return 0;
	input = data;
	input_n = n;
	dl_buf_clear(&said);
	if (dl_trainer_run(&t, "fuzz", NULL))
		abort();
	check_answers();
	if (count_lines(said.data, said.len) != 1 + count_lines(data, n) &&
		!memmem(data, n, "stop", 4))
		abort();
	return 0;
}
