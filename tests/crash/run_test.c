/*
 * dl-sync run, crashed at every call of every pass of a small run. Its two
 * learners are played here: each push adds 1 to a place of its own, so that at
 * the end every place tells whether its push was merged once.
 *
 * Arguments choose kinds of crashes; DL_CRASH_ALL tries them at every call.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"
#include "base/file.h"
#include "crash.h"
#include "link/message.h"
#include "link/spool.h"
#include "link/spool_file.h"
#include "state/store.h"

enum { P = 2, SIZE = 8, PUSHES = 2, H = 6, PASSES = 5, MORE = 8, END = 4 };

static const char layout_text[] =
	"# name\tdtype\tshape\telements\tfragment\trule\n"
	"# format\t1\n"
	"a\tF32\t8\t8\t0\tmean\n"
	"b\tF32\t8\t8\t1\tmean\n";
static const char model_head[] =
	"{\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32]},"
	"\"b\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[32,64]}}";

static struct dl_layout layout;
static char *spool_path, *store_path, *layout_path, *model_path;

/* Learner p pushes to fragment p and to no other. */
static struct learner {
	const char *name;
	uint64_t instance, steps;
	uint64_t made;		 /* pushes put */
	uint64_t taken, settled; /* as the syncer has said */
	int hello;
} learners[P];

static void must(int code, const struct dl_err *e)
{
	if (!code)
		return;
	printf("Bail out! %s\n", e->text);
	exit(99);
}

/* The run is to end, and the learners have nothing more to give. */
static int ending;

/* ---- the learners ------------------------------------------------------- */

static int open_spool(void)
{
	struct dl_err e;
	int fd;

	must(dl_spool_open(spool_path, &fd, &e), &e);
	return fd;
}

static int read_latest(int spool, struct dl_spool_latest *v)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_err e;
	int code = dl_spool_read(spool, "global/latest", 1 << 20, &text, &e);

	if (!code)
		code = dl_spool_latest_parse(v, text.data, text.len, &e);
	dl_buf_free(&text);
	return code;
}

static void say(int spool, struct learner *l, const struct dl_spool_latest *v)
{
	struct dl_version version[P];
	struct dl_spool_learner says = {.instance = l->instance,
		.clock = l->steps,
		.steps = l->steps,
		.tokens = 100 * l->steps,
		.state = ending ? DL_SPOOL_DRAINED : DL_SPOOL_TRAINING,
		.version = version,
		.fragments = P};
	char *path = dl_sprintf("learner/%s", l->name);
	struct dl_buf text = DL_BUF_INIT;
	struct iovec part;
	struct dl_err e;

	for (uint32_t p = 0; p < P; p++)
		version[p] = v->fragment[p].version;
	dl_spool_learner_write(&says, &text);
	part = (struct iovec){text.data, text.len};
	must(dl_spool_put(spool, l->name, path, &part, 1, &e), &e);
	dl_buf_free(&text);
	free(path);
	l->hello = 1;
}

static void make_push(struct dl_buf *out, const struct dl_message *m,
	const struct learner *l, const struct dl_spool_latest *v)
{
	struct dl_writer w = DL_WRITER_INIT;
	float delta[SIZE] = {0};

	dl_message_meta(m, &w);
	dl_writer_meta(&w, "dl.run", v->run);
	dl_writer_meta(&w, "dl.learner", l->name);
	dl_writer_meta_u64(&w, "dl.instance", l->instance);
	dl_layout_record(&layout, m->fragment, &w);
	dl_writer_finish(&w, out, NULL);
	dl_writer_release(&w);
	delta[m->seq - 1] = 1;
	dl_buf_add(out, delta, sizeof delta);
}

/* One at each due step. */
static void push(int spool, struct learner *l, const struct dl_spool_latest *v)
{
	uint32_t p = (uint32_t)(l - learners);
	struct dl_message m = {.kind = DL_MSG_PUSH,
		.codec = "f32",
		.fragment = p,
		.seq = ++l->made,
		.step = l->steps - p * H / P,
		.steps = H,
		.tokens = 100 * H,
		.base = v->fragment[p].version};
	struct dl_spool_push name = {
		.step = m.step, .seq = m.seq, .fragment = p};
	char file[DL_SPOOL_NAME], *folder, *path;
	struct dl_buf record = DL_BUF_INIT;
	struct iovec part;
	struct dl_hash h;
	struct dl_err e;

	if (m.seq == 1)
		m.steps -= p * H / P;
	make_push(&record, &m, l, v);
	dl_hash_init(&h);
	dl_hash_add(&h, record.data, record.len);
	dl_hash_hex(&h, name.hash);
	folder = dl_sprintf("new/%s", l->name);
	path = dl_sprintf("%s/%s", folder, dl_spool_push_name(file, &name));
	part = (struct iovec){record.data, record.len};
	must(dl_spool_make_folder(spool, folder, &e), &e);
	must(dl_spool_put(spool, l->name, path, &part, 1, &e), &e);
	dl_buf_free(&record);
	free(folder);
	free(path);
}

/* What the syncer says of its pushes; what it has said it does not take back.
 */
static int hear(int spool, struct learner *l)
{
	uint32_t p = (uint32_t)(l - learners);
	char *path = dl_sprintf("taken/%s", l->name);
	struct dl_buf text = DL_BUF_INIT;
	struct dl_spool_taken v = {0};
	int good = 1;

	if (!dl_spool_read(spool, path, 1 << 20, &text, NULL)) {
		good = !dl_spool_taken_parse(&v, text.data, text.len, NULL);
		if (good && v.instance == l->instance) {
			good = v.fragment[p].taken >= l->taken &&
			       v.fragment[p].settled >= l->settled &&
			       v.fragment[p].taken <= l->made;
			l->taken = v.fragment[p].taken;
			l->settled = v.fragment[p].settled;
		}
		dl_spool_taken_release(&v);
	}
	dl_buf_free(&text);
	free(path);
	return good;
}

static void hear_all(void)
{
	int spool = open_spool();

	for (int p = 0; p < P; p++)
		hear(spool, &learners[p]);
	close(spool);
}

/* Before pass i: hello, a first step, which makes members of them, then a push
 * of each for every round, and in the end nothing but steps. */
static void play(int i)
{
	struct dl_spool_latest v;
	int spool;

	if (!i)
		return;
	spool = open_spool();
	if (!read_latest(spool, &v)) {
		for (struct learner *l = learners; l < learners + P; l++) {
			l->steps =
				i < 3 ? (uint64_t)i - 1 : H * ((uint64_t)i - 2);
			if (i > 2 && l->made < PUSHES)
				push(spool, l, &v);
			say(spool, l, &v);
		}
		dl_spool_latest_release(&v);
	}
	close(spool);
}

static int all_settled(void)
{
	for (int p = 0; p < P; p++)
		if (learners[p].settled < PUSHES)
			return 0;
	return 1;
}

/* ---- the syncer --------------------------------------------------------- */

static int exec_pass(void *arg)
{
	const char *argv[] = {"dl-sync", "run", "--run", "demo", "--layout",
		layout_path, "--preset", "downpour", "-H", "6", "--threads",
		"1", spool_path, model_path, NULL};
	char *log = dl_sprintf("%s/syncer.log", crash_folder());
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0666);

	(void)arg;
	dup2(fd, STDERR_FILENO);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	return 99;
}

static int pass(const struct crash *plan)
{
	const struct crash none = {0};

	return crash_run(plan ? plan : &none, exec_pass, NULL, NULL);
}

/* ---- what is looked for ------------------------------------------------- */

/* Every value a fragment may have: no push twice; none missing when there have
 * to be n. */
static int counts(const float *v, uint64_t n)
{
	for (uint64_t k = 0; k < SIZE; k++)
		if (v[k] != (k < n ? 1 : 0) &&
			(k < n || k >= PUSHES || v[k] != 1))
			return 0;
	return 1;
}

/* The store is one that was committed, with all that was settled. */
static int store_is_sound(void)
{
	struct dl_store *s;
	float v[SIZE];
	struct dl_err e;
	int code = dl_store_open(&s, store_path, DL_STORE_LOOK, &e), sound = 1;

	if (code)
		return code == DL_NOINPUT && !learners[0].hello;
	for (uint32_t p = 0; sound && p < P; p++)
		sound = !dl_store_load(s, p, v, NULL, &e) &&
			counts(v, learners[p].settled);
	dl_store_close(s);
	return sound;
}

/* Whatever latest names is there, whole, and holds what was settled. */
static int is_shown(int spool, const struct dl_spool_global *row, uint32_t p)
{
	char name[DL_SPOOL_NAME], hash[DL_HASH_HEX], *path;
	float v[SIZE];
	struct dl_err e;
	int fd, shown;

	path = dl_sprintf(
		"global/%s", dl_spool_version_name(name, p, row->version));
	shown = !dl_spool_open_file(spool, path, &fd, NULL, &e);
	if (shown) {
		shown = !dl_spool_hash(fd, row->bytes, hash, &e) &&
			!strcmp(hash, row->hash) &&
			pread(fd, v, sizeof v,
				(off_t)(row->bytes - sizeof v)) == sizeof v &&
			counts(v, learners[p].settled);
		close(fd);
	}
	free(path);
	return shown;
}

static int spool_is_sound(void)
{
	struct dl_spool_latest v;
	struct dl_err e;
	int spool, code = dl_spool_open(spool_path, &spool, &e), sound = 1;

	if (code)
		return code == DL_NOINPUT && !learners[0].hello;
	for (int p = 0; p < P; p++)
		sound = sound && hear(spool, &learners[p]);
	code = read_latest(spool, &v);
	if (code == DL_NOINPUT) {
		sound = sound && !learners[0].hello;
	} else {
		sound = sound && !code;
		for (uint32_t p = 0; sound && p < P; p++)
			sound = is_shown(spool, &v.fragment[p], p);
		if (!code)
			dl_spool_latest_release(&v);
	}
	close(spool);
	return sound;
}

static int is_sound(void)
{
	int spool = spool_is_sound(), store = store_is_sound();

	if (!spool)
		puts("# the spool is not sound");
	if (!store)
		puts("# the store is not sound");
	return spool && store;
}

static void ask_for_end(void)
{
	char *path = dl_sprintf("%s/end", spool_path);
	struct dl_err e;

	must(dl_write_file(path, "", 0, &e), &e);
	free(path);
	ending = 1;
}

/* Goes on until all pushes are settled; then each has been merged once. One of
 * a round that was never opened, since the tape lost how fast learners are, is
 * merged with the next, or here when the run ends. */
static int comes_to_its_end(int i)
{
	int code;

	for (int more = 0; more < MORE; more++, i++) {
		code = pass(NULL);
		if (code && code != DL_TEMPFAIL)
			printf("# a pass exits with %d\n", code);
		if ((code && code != DL_TEMPFAIL) || !is_sound())
			return 0;
		if (all_settled())
			return 1;
		if (more == END)
			ask_for_end();
		play(i + 1);
	}
	puts("# a push is never settled");
	return 0;
}

/* ---- places to crash at ------------------------------------------------- */

static void copy_tree(const char *from, const char *to);

static void copy_entry(const char *from, const char *to, const char *name)
{
	char *source = dl_sprintf("%s/%s", from, name);
	char *target = dl_sprintf("%s/%s", to, name);
	struct dl_buf text = DL_BUF_INIT;
	struct stat st;
	struct dl_err e;
	FILE *f;

	if (!stat(source, &st) && S_ISDIR(st.st_mode)) {
		copy_tree(source, target);
	} else {
		must(dl_read_file(source, 1 << 24, &text, &e), &e);
		f = fopen(target, "w");
		if (!f || fwrite(text.data, 1, text.len, f) != text.len ||
			fclose(f))
			exit(99);
	}
	dl_buf_free(&text);
	free(source);
	free(target);
}

static void copy_tree(const char *from, const char *to)
{
	DIR *d = opendir(from);
	struct dirent *entry;

	mkdir(to, 0777);
	while (d && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			copy_entry(from, to, entry->d_name);
	if (d)
		closedir(d);
}

/* The run as it is just before pass i, to be gone back to. */
static struct point {
	struct learner learners[P];
	char *folder;
	unsigned calls, syncs; /* of that pass */
} points[PASSES];

static void begin_run(void)
{
	static const char *const names[P] = {"ann", "ben"};

	crash_clean();
	for (int p = 0; p < P; p++)
		learners[p] = (struct learner){
			.name = names[p], .instance = 7 + (uint64_t)p};
}

static void go_back(int i)
{
	crash_clean();
	copy_tree(points[i].folder, crash_root_folder());
	memcpy(learners, points[i].learners, sizeof learners);
	ending = 0;
}

static unsigned count(const char *call, int i)
{
	char *log = dl_sprintf("%s/log", crash_folder());
	char *word = dl_sprintf(" %s ", call);
	struct crash plan = {.log = log};
	struct dl_buf text = DL_BUF_INIT;
	struct dl_err e;
	unsigned n = 0;

	go_back(i);
	unlink(log);
	pass(&plan);
	must(dl_read_file(log, 1 << 24, &text, &e), &e);
	for (const char *at = dl_buf_cstr(&text); *at;
		at = strchr(at, '\n') + 1)
		n += !*call || !strncmp(strchr(at, ' '), word, strlen(word));
	dl_buf_free(&text);
	free(word);
	free(log);
	return n;
}

static void make_points(void)
{
	begin_run();
	for (int i = 0; i < PASSES; i++) {
		play(i);
		points[i].folder = dl_sprintf("%s/%d", crash_folder(), i);
		copy_tree(crash_root_folder(), points[i].folder);
		memcpy(points[i].learners, learners, sizeof learners);
		pass(NULL);
		hear_all();
	}
	ok(all_settled() && is_sound(),
		"a run of %d passes in which nothing happens", PASSES);
	for (int i = 0; i < PASSES; i++) {
		points[i].calls = count("", i);
		points[i].syncs = count("sync", i);
	}
}

/* ---- the tests ---------------------------------------------------------- */

static int survives(const struct crash *plan, int i)
{
	go_back(i);
	return pass(plan) == CRASHED && is_sound() && comes_to_its_end(i);
}

static unsigned stride(unsigned usual)
{
	return crash_all() ? 1 : usual;
}

static void test_crashes(const char *what, unsigned seed)
{
	unsigned tried = 0, bad = 0, first = 1 + 7 * seed % stride(59);

	for (int i = 0; i < PASSES; i++)
		for (unsigned at = first; at <= points[i].calls;
			at += stride(59)) {
			struct crash plan = {
				.what = what, .at = at, .seed = seed};

			tried++;
			if (survives(&plan, i))
				continue;
			bad++;
			printf("# %s at call %u of %u of pass %d, seed %u\n",
				what, at, points[i].calls, i, seed);
		}
	ok(tried && !bad, "%s at %u calls", what, tried);
}

/* The first call of pass i at which a power cut shows that a sync was left out;
 * 0 when none does. */
static unsigned noticed(const char *skip, int i, unsigned from)
{
	static const char *const cuts[] = {"power", "data", "mixed", "mixed"};

	for (unsigned at = from; at <= points[i].calls; at++)
		for (unsigned k = 0; k < sizeof cuts / sizeof *cuts; k++) {
			struct crash plan = {.what = cuts[k],
				.at = at,
				.seed = k,
				.skip = skip};

			if (!survives(&plan, i))
				return at;
		}
	return 0;
}

/* A push that was taken is nowhere else. */
static void test_left_out(void)
{
	static const struct {
		const char *sync;
		unsigned from;
	} tests[] = {{"*/store/push/*.tmp.*", 16}, {"*/store/push", 21}};

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		unsigned at = noticed(tests[i].sync, 3, tests[i].from);

		ok(at != 0, "without the sync of %s it fails (at call %u)",
			tests[i].sync, at);
	}
}

/* The power is cut after a pass, when learners have heard what it said. */
static void test_after(void)
{
	static const char *const cuts[] = {"power", "data", "names"};
	unsigned bad = 0;

	for (int i = 0; i < PASSES; i++)
		for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
			struct crash plan = {.what = cuts[k], .look = hear_all};

			if (survives(&plan, i))
				continue;
			bad++;
			printf("# %s after pass %d\n", cuts[k], i);
		}
	ok(!bad, "a power cut when learners have heard of a pass");
}

static int is_missed_after(const char *skip, int i)
{
	struct crash plan = {.what = "power", .look = hear_all, .skip = skip};

	return !survives(&plan, i);
}

/* What learners were told lasts. Only open/ is not missed: the next pass shows
 * it anew, and who has heard of it has lost nothing. */
static void test_left_out_after(void)
{
	static const char *const syncs[] = {"*/spool/taken", "*/spool/global",
		"*/spool/tmp/*", "*/store", "*/store/global"};

	for (size_t k = 0; k < sizeof syncs / sizeof *syncs; k++)
		ok(is_missed_after(syncs[k], 3),
			"without the sync of %s a cut after a pass shows",
			syncs[k]);
}

/* One by one. */
static void test_each_left_out(void)
{
	for (int i = 0; crash_all() && i < PASSES; i++)
		for (unsigned k = 1; k <= points[i].syncs; k++) {
			char number[16];
			unsigned at;

			snprintf(number, sizeof number, "%u", k);
			at = noticed(number, i, 1);
			printf("# sync %u of %u of pass %d: %s %u\n", k,
				points[i].syncs, i,
				at			     ? "missed at call"
				: is_missed_after(number, i) ? "missed after it"
							     : "never missed",
				at);
		}
}

static void set_up(void)
{
	struct dl_buf model = DL_BUF_INIT;
	unsigned char length[8];
	const char *folder = crash_folder();
	struct dl_err e;

	must(dl_layout_parse(&layout, layout_text, sizeof layout_text - 1, &e),
		&e);
	spool_path = dl_sprintf("%s/spool", crash_root_folder());
	store_path = dl_sprintf("%s/store", spool_path);
	layout_path = dl_sprintf("%s/layout.tsv", folder);
	model_path = dl_sprintf("%s/model.safetensors", folder);
	must(dl_write_file(
		     layout_path, layout_text, sizeof layout_text - 1, &e),
		&e);
	dl_put_le64(length, sizeof model_head - 1);
	dl_buf_add(&model, length, 8);
	dl_buf_str(&model, model_head);
	dl_buf_add(&model, (float[P * SIZE]){0}, P * SIZE * sizeof(float));
	must(dl_write_file(model_path, model.data, model.len, &e), &e);
	dl_buf_free(&model);
}

static void test_lies(void)
{
	struct crash plan = {.what = "lie"};
	int bad = 0;

	for (int i = 0; i < PASSES; i++) {
		int code;

		go_back(i);
		code = pass(&plan);
		bad += (code && code != DL_TEMPFAIL) || !is_sound() ||
		       !comes_to_its_end(i);
	}
	ok(!bad, "renames that work but answer ENOENT");
}

/* A call that fails ends the pass, or costs it nothing; the next goes on. */
static void test_errors(const char *what)
{
	unsigned tried = 0, bad = 0;

	for (int i = 0; i < PASSES; i++)
		for (unsigned at = 1; at <= points[i].calls; at += stride(71)) {
			struct crash plan = {.what = what, .at = at};
			int code;

			go_back(i);
			code = pass(&plan);
			tried++;
			if ((!code || code == DL_TEMPFAIL ||
				    code == DL_CANTCREAT || code == DL_IOERR) &&
				is_sound() && comes_to_its_end(i))
				continue;
			bad++;
			printf("# %s at call %u of %u of pass %d: %d\n", what,
				at, points[i].calls, i, code);
		}
	ok(tried && !bad, "%s at %u calls", what, tried);
}

/* Is it named, or nothing? */
static int is_wanted(char **names, const char *what)
{
	int wanted = !*names;

	for (; *names; names++)
		wanted = wanted || !strcmp(*names, what);
	return wanted;
}

static void test_kinds(char **names)
{
	static const char *const kinds[] = {"kill", "power", "data", "names"};

	for (unsigned seed = 0; seed < 4; seed++)
		if (is_wanted(names, kinds[seed]))
			test_crashes(kinds[seed], seed);
	if (is_wanted(names, "mixed"))
		for (unsigned seed = 4; seed < (crash_all() ? 9 : 5); seed++)
			test_crashes("mixed", seed);
	if (is_wanted(names, "after"))
		test_after();
	if (is_wanted(names, "lie"))
		test_lies();
	if (is_wanted(names, "full"))
		test_errors("full");
	if (is_wanted(names, "EIO"))
		test_errors("EIO");
	if (is_wanted(names, "left-out")) {
		test_left_out();
		test_left_out_after();
		test_each_left_out();
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	crash_begin(argv);
	set_up();
	make_points();
	test_kinds(argv + 1);
	dl_layout_release(&layout);
	crash_done();
	return done_testing();
}
