/* Training as a whole: exact states, and the orders of dl-trainer(7). */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "tests/tap.h"
#include "train/blas.h"
#include "train/export.h"
#include "train/store.h"
#include "train/trainer.h"

static const struct dl_config config = {.layers = 1,
	.heads = 2,
	.kv_heads = 1,
	.width = 8,
	.inner = 12,
	.vocab = 256,
	.context = 8,
	.eps = 1e-5,
	.theta = 10000,
	.tied = 0};

static struct dl_llama m;
static struct dl_corpus corpus;
static char folder[] = "/tmp/training_test.XXXXXX";

static char *in_folder(const char *name)
{
	return dl_sprintf("%s/%s", folder, name);
}

static void make_corpus(void)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_err e;
	char *path = in_folder("text");

	for (unsigned i = 0; i < 200; i++)
		dl_buf_printf(&text, "line %u of a text\n", i * i % 37);
	if (dl_write_file(path, text.data, text.len, &e) ||
		dl_corpus_read(&corpus, &path, 1, 0, 256, 0.1, &e))
		abort();
	free(path);
	dl_buf_free(&text);
}

static void start(struct dl_training *t)
{
	struct dl_training_options o = {.adamw = DL_ADAMW_DEFAULTS,
		.batch = 3,
		.threads = 1,
		.seed = 9};

	o.adamw.warmup = 20;
	o.adamw.steps = 200;
	dl_training_init(t, &m, &corpus, &o);
	dl_llama_randomise(&m, 4, t->values);
}

static int same(const float *a, const float *b)
{
	return !memcmp(a, b, m.size * sizeof(float));
}

static void test_exact(void)
{
	struct dl_training whole, half, rest;
	char *path = in_folder("state");
	struct dl_err e = {0};

	start(&whole);
	start(&half);
	start(&rest);
	for (int i = 0; i < 200; i++)
		dl_training_step(&whole);
	for (int i = 0; i < 100; i++)
		dl_training_step(&half);
	ok(!dl_store_save(&half, path, &e), "a state is saved %s", e.text);
	ok(!dl_store_restore(&rest, path, &e), "and restored %s", e.text);
	ok(rest.clock == 100 && rest.tokens == 100 * 3 * 8,
		"its clock and tokens with it");
	for (int i = 0; i < 100; i++)
		dl_training_step(&rest);
	ok(same(whole.values, rest.values) &&
			same(whole.adamw.second, rest.adamw.second),
		"200 steps are 100 and 100, bit for bit");
	dl_training_release(&whole);
	dl_training_release(&half);
	dl_training_release(&rest);
	free(path);
}

static void test_corpus(void)
{
	uint16_t a[3 * 9], b[3 * 9];

	dl_corpus_sample(&corpus, 1, 5, 3, 8, a);
	dl_corpus_sample(&corpus, 1, 5, 3, 8, b);
	ok(!memcmp(a, b, sizeof(a)), "a sample is a function of its clock");
	dl_corpus_sample(&corpus, 1, 6, 3, 8, b);
	ok(memcmp(a, b, sizeof(a)), "another clock draws another");
	ok(corpus.tokens - corpus.train == (corpus.tokens + 9) / 10,
		"a tenth is held out");
}

/* The learner's end of a conversation. */
struct learner {
	int listening, fd;
	char *path;
	struct dl_trainer trainer;
	struct dl_pace pace;
	pthread_t thread;
	unsigned steps;
};

static volatile sig_atomic_t stop;

static void count(void *ctx, double loss)
{
	(void)loss;
	((struct learner *)ctx)->steps++;
}

static void *train(void *arg)
{
	struct learner *l = arg;
	struct dl_err e;

	return dl_trainer_run(&l->trainer, l->path, &e) ? l : NULL;
}

static void meet(
	struct learner *l, struct dl_training *t, struct dl_fragments *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	memset(l, 0, sizeof(*l));
	l->path = in_folder("socket");
	strcpy(a.sun_path, l->path);
	l->listening = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(l->listening, (struct sockaddr *)&a, sizeof(a)) ||
		listen(l->listening, 1))
		abort();
	l->trainer = (struct dl_trainer){.training = t,
		.fragments = f,
		.pace = &l->pace,
		.stop = &stop,
		.stepped = count,
		.ctx = l};
	pthread_create(&l->thread, NULL, train, l);
	l->fd = accept(l->listening, NULL, NULL);
}

static int part(struct learner *l)
{
	void *failed;

	close(l->fd);
	pthread_join(l->thread, &failed);
	close(l->listening);
	unlink(l->path);
	free(l->path);
	return !failed;
}

/* The trainer's next line, in a buffer that the next call reuses. */
static const char *heard(struct learner *l)
{
	static char line[1024];
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(l->fd, line + n, 1) == 1 &&
		line[n] != '\n')
		n++;
	line[n] = '\0';
	return line;
}

__attribute__((format(printf, 2, 3))) static const char *tell(
	struct learner *l, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	strcat(line, "\n");
	if (dl_write_full(l->fd, line, strlen(line)))
		abort();
	return heard(l);
}

static int said(const char *line, const char *wanted)
{
	int yes = !strncmp(line, wanted, strlen(wanted));

	if (!yes)
		printf("# \"%s\" and not \"%s\"\n", line, wanted);
	return yes;
}

/* Two fragments: the head, and the first norm with all else left local. */
static void write_layout(const char *path)
{
	static const char text[] =
		"# format\t1\n# strategy\tbalanced\n"
		"lm_head.weight\tF32\t256x8\t2048\t0\tmean\n"
		"model.layers.0.input_layernorm.weight\tF32\t8\t8\t1\trda\n"
		"model.norm.weight\tF32\t8\t8\t1\trda\n";
	struct dl_err e;

	if (dl_write_file(path, text, sizeof(text) - 1, &e))
		abort();
}

static void test_trainer(void)
{
	struct dl_training t, twin;
	struct dl_fragments f;
	struct learner l;
	struct dl_err e = {0};
	char *layout = in_folder("layout");
	const float *head;
	float before;

	start(&t);
	start(&twin);
	write_layout(layout);
	if (!ok(!dl_fragments_open(&f, &m, layout, &e), "a layout is read %s",
		    e.text))
		return;
	head = t.values + m.head;
	before = head[7];
	meet(&l, &t, &f);
	ok(said(heard(&l), "ready 1"), "a trainer says that it is ready");
	ok(said(tell(&l, "send 0 %s/0", folder), "ok"), "send");
	ok(said(tell(&l, "apply 0 %s/0 add", folder), "ok") &&
			head[7] == before + before,
		"apply add");
	ok(said(tell(&l, "apply 0 %s/0 blend 0.75", folder), "ok") &&
			head[7] == 0.75f * (before + before) + 0.25f * before,
		"apply blend");
	ok(said(tell(&l, "apply 0 %s/0 set", folder), "ok") &&
			same(t.values, twin.values),
		"apply set");
	ok(said(tell(&l, "apply 1 %s/0 set", folder), "error ") &&
			said(tell(&l, "apply 2 %s/0 set", folder), "error ") &&
			said(tell(&l, "apply 0 %s/0 mix", folder), "error ") &&
			said(tell(&l, "send 0"), "error ") &&
			said(tell(&l, "dance"), "error ") &&
			said(tell(&l, "restore %s/0", folder), "error ") &&
			same(t.values, twin.values),
		"what cannot be done is refused and changes nothing");
	ok(said(tell(&l, "clock 41"), "ok"), "clock");
	ok(said(tell(&l, "go"), "step 24 "), "go makes a step");
	ok(t.clock == 42 && t.adamw.updates == 1 &&
			!same(t.values, twin.values),
		"from that clock on");
	ok(said(tell(&l, "prepare %s/none", folder), "error ") &&
			said(tell(&l, "export %s/all", folder), "ok") &&
			said(tell(&l, "prepare %s/all", folder), "ok") &&
			said(tell(&l, "export %s/all", folder), "ok"),
		"export, told before or not");
	ok(said(tell(&l, "go"), "step 24 ") && t.clock == 43, "another step");
	ok(said(tell(&l, "clock 50 fresh"), "ok") && t.clock == 50 &&
			t.adamw.updates == 0 && t.adamw.since == 50 &&
			t.adamw.second[m.head] == 0,
		"clock fresh");
	ok(said(tell(&l, "import %s/all", folder), "ok") && t.clock == 42 &&
			t.adamw.updates == 1,
		"import");
	ok(said(tell(&l, "stop"), "ok") && part(&l) && l.steps == 2, "stop");
	meet(&l, &t, NULL);
	ok(said(heard(&l), "ready 1") &&
			said(tell(&l, "send 0 %s/0", folder), "error "),
		"without a layout there are no fragments");
	ok(part(&l), "the end of the input is a stop");
	dl_fragments_close(&f);
	dl_training_release(&t);
	dl_training_release(&twin);
	free(layout);
}

/* Is a fragment, changed since the last time, the same behind the file? */
static int passes(struct dl_fragments *f, struct dl_training *from,
	struct dl_training *to, const char *path, off_t size)
{
	struct dl_err e = {0};
	struct stat st;
	int fine;

	from->values[m.head + 7]++;
	fine = !dl_fragments_send(f, 0, from->values, path, &e) &&
	       !dl_fragments_apply(f, 0, path, 0, 1, to->values, &e) &&
	       same(from->values, to->values) && !stat(path, &st) &&
	       (!size || st.st_size == size);
	if (!fine)
		printf("# %s\n", e.text);
	return fine;
}

static void test_files(void)
{
	char *layout = in_folder("layout"), *path = in_folder("fragment");
	struct dl_training t, twin;
	struct dl_fragments f;
	struct dl_err e;
	struct stat st;

	start(&t);
	start(&twin);
	write_layout(layout);
	if (dl_fragments_open(&f, &m, layout, &e))
		abort();
	ok(passes(&f, &t, &twin, path, 0) && !stat(path, &st),
		"a fragment is sent to a new file and applied");
	ok(passes(&f, &t, &twin, path, st.st_size) &&
			passes(&f, &t, &twin, path, st.st_size),
		"and again, through the same file");
	ok(!truncate(path, st.st_size + 9000) &&
			passes(&f, &t, &twin, path, st.st_size),
		"through one that has grown");
	ok(!truncate(path, st.st_size / 2) &&
			dl_fragments_apply(&f, 0, path, 0, 1, twin.values,
				&e) == DL_DATA &&
			same(t.values, twin.values) &&
			passes(&f, &t, &twin, path, st.st_size),
		"through one that was cut, which is not applied before");
	ok(!unlink(path) && passes(&f, &t, &twin, path, st.st_size) &&
			passes(&f, &t, &twin, path, st.st_size),
		"through another of that name");
	dl_fragments_close(&f);
	dl_training_release(&t);
	dl_training_release(&twin);
	free(layout);
	free(path);
}

/* Is what was exported what is written without a map? */
static int exports(
	struct dl_export *x, const struct dl_training *t, const char *path)
{
	struct dl_buf a = DL_BUF_INIT, b = DL_BUF_INIT;
	char *plain = in_folder("plain");
	struct dl_err e = {0};
	int same = !dl_export_write(x, t, path, &e) &&
		   !dl_store_save_scratch(t, plain, &e) &&
		   !dl_read_file(path, 1 << 20, &a, &e) &&
		   !dl_read_file(plain, 1 << 20, &b, &e) && a.len == b.len &&
		   !memcmp(a.data, b.data, a.len);

	if (!same)
		printf("# %zu bytes, not %zu: %s\n", a.len, b.len, e.text);
	dl_buf_free(&a);
	dl_buf_free(&b);
	free(plain);
	return same;
}

static void test_export(void)
{
	struct dl_export x = DL_EXPORT_INIT;
	char *path = in_folder("export"), *other = in_folder("other");
	struct dl_training t;
	struct dl_err e;

	start(&t);
	if (dl_write_file(path, "", 0, &e) || truncate(path, 1 << 16))
		abort();
	ok(!dl_export_prepare(&x, path, &e) && exports(&x, &t, path) && x.map,
		"an export into a file that is mapped");
	t.clock = 123456789012;
	ok(exports(&x, &t, path), "a longer one, into the same");
	t.clock = 1;
	ok(exports(&x, &t, path), "and a shorter one");
	ok(exports(&x, &t, other), "another file is written");
	if (truncate(path, 1))
		abort();
	ok(exports(&x, &t, path), "one that was cut is made whole");
	ok(!unlink(path) && exports(&x, &t, path), "a new one is written");
	if (truncate(path, 100))
		abort();
	ok(!dl_export_prepare(&x, path, &e) && exports(&x, &t, path),
		"so is one that had too little room");
	ok(dl_export_prepare(&x, folder, &e) == DL_IOERR, "not a folder");
	dl_export_release(&x);
	dl_training_release(&t);
	free(path);
	free(other);
}

int main(void)
{
	struct dl_err e;
	char *command;

	ok(!dl_blas_load(&e), "BLAS is loaded");
	if (!mkdtemp(folder))
		return 1;
	dl_llama_init(&m, &config);
	make_corpus();
	test_corpus();
	test_exact();
	test_trainer();
	test_files();
	test_export();
	dl_corpus_release(&corpus);
	dl_llama_release(&m);
	command = dl_sprintf("rm -r %s", folder);
	if (system(command))
		return 1;
	free(command);
	return done_testing();
}
