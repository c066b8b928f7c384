/* Tapes: what goes in comes out, and makes the same decisions again. */
#include "state/replay.h"

#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tap.h"
#include "base/file.h"
#include "base/num.h"
#include "base/rng.h"
#include "faults.h"
#include "state/saved.h"

enum { P = 4 };

static char folder[] = "/tmp/dl-tape-XXXXXX";
static const char *path;

static void must(int rc, const struct dl_err *e, const char *what)
{
	if (!rc)
		return;
	printf("Bail out! %s: %d %s\n", what, rc, e->text);
	exit(1);
}

static struct dl_tape_start start(void)
{
	struct dl_tape_start s = {.run = "demo"};

	memset(s.layout, 'a', DL_HASH_HEX - 1);
	dl_sync_config_default(&s.config, P);
	return s;
}

static double any_double(struct dl_rng *r)
{
	static const double odd[] = {0.0, -0.0, 0.1, DBL_MAX, -DBL_MIN, 5e-324,
		1.0 / 3, NAN, INFINITY, -INFINITY};
	uint64_t bits = dl_rng_next(r);
	double v;

	if (bits % 4 == 0)
		return odd[bits / 4 % (sizeof odd / sizeof *odd)];
	memcpy(&v, &bits, sizeof v);
	return v;
}

static int same_double(double a, double b)
{
	return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof a);
}

static uint64_t any_u64(struct dl_rng *r)
{
	return dl_rng_next(r) >> dl_rng_below(r, 64);
}

static struct dl_version any_version(struct dl_rng *r)
{
	return (struct dl_version){any_u64(r), any_u64(r)};
}

static void any_event(
	struct dl_sync_event *ev, struct dl_version *versions, struct dl_rng *r)
{
	static const char *const names[] = {"a", "site-2.b_7",
		("0123456789012345678901234567890123456789"
		 "01234567890123456789012")};

	for (int p = 0; p < P; p++)
		versions[p] = any_version(r);
	*ev = (struct dl_sync_event){
		.kind = (enum dl_sync_event_kind)dl_rng_below(r, DL_EV_KINDS),
		.now = (int64_t)(any_u64(r) >> 2),
		.learner = names[dl_rng_below(r, 3)],
		.instance = any_u64(r),
		.clock = any_u64(r),
		.steps = any_u64(r),
		.tokens = any_u64(r),
		.fragment = (uint32_t)dl_rng_below(r, P),
		.seq = any_u64(r),
		.step = any_u64(r),
		.base = any_version(r),
		.version = any_version(r),
		.versions = versions,
		.norm = any_double(r),
		.loss = any_double(r),
		.push = any_u64(r),
		.elements = any_u64(r),
		.bytes = any_u64(r),
	};
}

static void any_hex(char *out, size_t digits, struct dl_rng *r)
{
	for (size_t i = 0; i < digits; i++)
		out[i] = "0123456789abcdef"[dl_rng_below(r, 16)];
	out[digits] = '\0';
}

/* What a merge came to, or nothing, as on the tapes of before. */
static void any_made(struct dl_tape_made *made, struct dl_rng *r)
{
	*made = (struct dl_tape_made){.values = ""};
	if (dl_rng_below(r, 4) == 0)
		return;
	if (dl_rng_below(r, 2)) {
		any_hex(made->values, DL_HASH_HEX - 1, r);
		any_hex(made->momentum, DL_HASH_HEX - 1, r);
	}
	any_hex(made->trail, DL_TRAIL_HEX - 1, r);
	made->alike = (struct dl_alike)DL_ALIKE_UNKNOWN;
	if (dl_rng_below(r, 4) != 0)
		made->alike = (struct dl_alike){
			2 * dl_rng_uniform(r) - 1, 2 * dl_rng_uniform(r) - 1};
}

static int same_made(const struct dl_tape_made *a, const struct dl_tape_made *b)
{
	return !strcmp(a->values, b->values) &&
	       !strcmp(a->momentum, b->momentum) &&
	       !strcmp(a->trail, b->trail) &&
	       (!*a->trail ||
		       (same_double(a->alike.mean, b->alike.mean) &&
			       same_double(a->alike.least, b->alike.least)));
}

/* Whether b is a in all that its kind carries. */
static int same_event(
	const struct dl_sync_event *a, const struct dl_sync_event *b)
{
	int who = a->kind != DL_EV_MERGED && a->kind != DL_EV_TIME &&
		  a->kind != DL_EV_END;
	int counts = a->kind == DL_EV_JOIN || a->kind == DL_EV_STEP;
	int push = a->kind == DL_EV_PUSH;
	int barred = a->kind == DL_EV_BARRED;
	int version = a->kind == DL_EV_APPLIED || a->kind == DL_EV_MERGED;

	if (a->kind != b->kind || a->now != b->now)
		return 0;
	if (who && (strcmp(a->learner, b->learner) != 0 ||
			   a->instance != b->instance))
		return 0;
	if (counts && a->clock != b->clock)
		return 0;
	if (barred && (a->seq != b->seq || a->steps != b->steps ||
			      a->bytes != b->bytes))
		return 0;
	if ((counts || push) &&
		(a->steps != b->steps || a->tokens != b->tokens))
		return 0;
	if ((push || barred || version || a->kind == DL_EV_WANT) &&
		a->fragment != b->fragment)
		return 0;
	if (push &&
		(a->seq != b->seq || a->step != b->step ||
			dl_version_cmp(a->base, b->base) != 0 ||
			!same_double(a->norm, b->norm) || a->push != b->push))
		return 0;
	if ((push || a->kind == DL_EV_APPLIED) &&
		(a->elements != b->elements || a->bytes != b->bytes))
		return 0;
	if (version && dl_version_cmp(a->version, b->version) != 0)
		return 0;
	if (a->kind == DL_EV_STEP && !same_double(a->loss, b->loss))
		return 0;
	return a->kind != DL_EV_JOIN ||
	       !memcmp(a->versions, b->versions, P * sizeof *a->versions);
}

static void test_events(void)
{
	struct dl_rng r = {dl_rng_key(7, 1), 0};
	struct dl_buf text = DL_BUF_INIT, again = DL_BUF_INIT;
	int same = 1, one_line = 1;

	for (int i = 0; i < 5000; i++) {
		struct dl_version versions[P];
		struct dl_tape_made made = {.values = ""};
		struct dl_tape_line l;
		struct dl_sync_event ev;
		int64_t wall;
		struct dl_err e;

		any_event(&ev, versions, &r);
		if (ev.kind == DL_EV_MERGED)
			any_made(&made, &r);
		wall = (int64_t)(any_u64(&r) >> 2);
		dl_buf_clear(&text);
		dl_tape_write_event(&text, &ev, &made, P, wall);
		one_line &= memchr(text.data, '\n', text.len) ==
			    text.data + text.len - 1;
		must(dl_tape_parse_line(&l, (char *)text.data, text.len, &e),
			&e, dl_buf_cstr(&text));
		same &= l.kind == DL_TAPE_EVENT && l.wall == wall &&
			same_event(&ev, &l.event) && same_made(&made, &l.made);
		dl_buf_clear(&again);
		dl_tape_write_event(&again, &l.event, &l.made, P, l.wall);
		same &= again.len == text.len &&
			!memcmp(again.data, text.data, text.len);
		dl_tape_line_release(&l);
	}
	ok(same, "5000 random events come back bit for bit");
	ok(one_line, "each is one line");
	dl_buf_free(&text);
	dl_buf_free(&again);
}

static void test_starts(void)
{
	struct dl_buf text = DL_BUF_INIT, again = DL_BUF_INIT;
	struct dl_tape_start s = start();
	struct dl_sync *core = dl_sync_new(&s.config);
	struct dl_tape_line l;
	struct dl_err e;

	s.config.grace = DL_GRACE_FIXED;
	s.config.late = DL_LATE_NOW;
	s.config.below = DL_BELOW_MERGE;
	s.config.gamma = 1.0 / 3;
	s.restored = 1;
	dl_sync_save(core, UINT32_MAX, &s.saved);
	s.saved.fragment[2].norms = DL_NORMS_KEPT + 1;
	s.saved.fragment[2].norm[0] = 32;
	s.saved.fragment[2].norm[1] = 1;
	dl_tape_write_start(&text, &s, 11, 7);
	must(dl_tape_parse_line(&l, (char *)text.data, text.len, &e), &e,
		"start");
	ok(l.kind == DL_TAPE_START && l.wall == 11 && l.now == 7 &&
			!strcmp(l.start.run, "demo") &&
			!strcmp(l.start.layout, s.layout) && l.start.restored,
		"a start comes back");
	ok(l.start.config.grace == DL_GRACE_FIXED &&
			l.start.config.late == DL_LATE_NOW &&
			l.start.config.below == DL_BELOW_MERGE &&
			l.start.config.gamma == 1.0 / 3 &&
			l.start.config.end_ns == s.config.end_ns,
		"with its settings");
	ok(l.start.saved.fragment[2].norms == DL_NORMS_KEPT &&
			l.start.saved.fragment[2].norm[0] == 1 &&
			l.start.saved.fragment[2].norm[31] == 32,
		"and its state, norms oldest first");
	dl_tape_write_start(&again, &l.start, 11, 7);
	ok(again.len == text.len && !memcmp(again.data, text.data, text.len) &&
			memchr(text.data, '\n', text.len) ==
				text.data + text.len - 1,
		"the same line again");
	dl_tape_line_release(&l);
	dl_sync_saved_release(&s.saved);
	dl_sync_free(core);
	dl_buf_free(&text);
	dl_buf_free(&again);
}

static void test_strict(void)
{
#define T "\"wall\":1,\"now\":2"
#define M "{\"event\":\"merged\"," T ",\"fragment\":1,\"version\":\"1.2\""
#define HASH                                                                   \
	"\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\""
	static const struct {
		const char *line, *fact;
	} bad[] = {
		{M ",\"momentum\":" HASH "}", "'values', 'trail' or the end"},
		{M ",\"trail\":\"0123456789abcdef\",\"values\":" HASH "}",
			"the key 'cosine' or the end"},
		{M ",\"values\":" HASH "}", "the key 'momentum'"},
		{M ",\"values\":\"\",\"momentum\":" HASH "}", "64 hex"},
		{M ",\"values\":" HASH ",\"momentum\":" HASH "}",
			"the key 'trail'"},
		{M ",\"values\":" HASH ",\"momentum\":" HASH
		   ",\"trail\":\"0123456789ABCDEF\"}",
			"16 hexadecimal digits"},
		{M ",\"values\":" HASH ",\"momentum\":" HASH
		   ",\"trail\":\"0123456789abcdef\",\"x\":1}",
			"the key 'cosine' or the end"},
		{M ",\"values\":" HASH ",\"momentum\":" HASH
		   ",\"trail\":\"0123456789abcdef\",\"cosine\":0.5}",
			"the key 'cosine_min'"},
		{M ",\"values\":" HASH ",\"momentum\":" HASH
		   ",\"trail\":\"0123456789abcdef\",\"cosine\":\"nan\","
		   "\"cosine_min\":0}",
			"not cosines"},
		{"", "JSON byte"},
		{"{}", "a key"},
		{"[]", "an object"},
		{"{\"format\":\"dl-tape 2\"}", "expected 'dl-tape 1'"},
		{"{\"note\":\"hello\"}", "neither a format nor an event"},
		{"{\"event\":\"jump\"," T "}", "not known here"},
		{"{\"event\":\"time\"}", "the key 'wall'"},
		{"{\"event\":\"time\",\"wall\":1}", "the key 'now'"},
		{"{\"event\":\"time\",\"now\":1,\"wall\":2}", "the key 'wall'"},
		{"{\"event\":\"time\"," T ",\"now\":2}", "the end of the"},
		{"{\"event\":\"time\"," T ",\"x\":1}", "the end of the object"},
		{"{\"event\":\"time\"," T "}}", "JSON byte"},
		{"{\"event\":\"time\",\"wall\":1,\"now\":-2}", "integer"},
		{"{\"event\":\"time\",\"wall\":1,\"now\":9223372036854775808}",
			"62 bits"},
		/* To which nothing can be added any more. */
		{"{\"event\":\"end\",\"wall\":1,\"now\":4611686018427387904}",
			"62 bits"},
		{"{\"event\":\"end\"," T ",\"learner\":\"a\"}", "end of the"},
		{"{\"event\":\"leave\"," T ",\"learner\":\"a/b\","
		 "\"instance\":1}",
			"a good name"},
		{"{\"event\":\"leave\"," T ",\"learner\":\"a\"}",
			"the key 'instance'"},
		{"{\"event\":\"want\"," T ",\"learner\":\"a\",\"instance\":1,"
		 "\"fragment\":4294967296}",
			"32 bits"},
		{"{\"event\":\"merged\"," T ",\"fragment\":1,"
		 "\"version\":\"1.2.3\"}",
			"a version"},
		{"{\"event\":\"merged\"," T ",\"fragment\":1,"
		 "\"version\":1.2}",
			"a string"},
		{"{\"event\":\"step\"," T ",\"learner\":\"a\",\"instance\":1,"
		 "\"clock\":1,\"steps\":1,\"tokens\":1,\"loss\":\"NaN\"}",
			"\"nan\""},
		{"{\"event\":\"join\"," T ",\"learner\":\"a\",\"instance\":1,"
		 "\"clock\":1,\"steps\":1,\"tokens\":1,\"versions\":[1]}",
			"another item"},
	};
#undef HASH
#undef M
#undef T

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct dl_tape_line l;
		struct dl_err e = {0};
		int rc = dl_tape_parse_line(
			&l, bad[i].line, strlen(bad[i].line), &e);

		ok(rc == DL_DATA && strstr(e.text, bad[i].fact), "%s: %s",
			bad[i].line, e.text);
		dl_tape_line_release(&l);
	}
}

static int read_tape(int *starts, int *events, int *torn, struct dl_err *e)
{
	struct dl_tape_reader r;
	struct dl_tape_line l = {0};
	int fd, rc = dl_open_read(path, &fd, e);

	*starts = *events = *torn = 0;
	if (rc)
		return rc;
	dl_tape_reader_init(&r, fd, path);
	while (!(rc = dl_tape_next(&r, &l, e))) {
		*starts += l.kind == DL_TAPE_START;
		*events += l.kind == DL_TAPE_EVENT;
	}
	*torn = r.torn;
	dl_tape_line_release(&l);
	dl_tape_reader_release(&r);
	close(fd);
	return rc;
}

static void put(const char *text)
{
	struct dl_err e;

	must(dl_write_file(path, text, strlen(text), &e), &e, "put");
}

static struct dl_tape *open_tape(int64_t now)
{
	struct dl_tape_start s = start();
	struct dl_tape *t;
	struct dl_err e;

	must(dl_tape_open(&t, path, &s, 1, now, &e), &e, "open");
	return t;
}

static void test_files(void)
{
	struct dl_sync_event ev = {.kind = DL_EV_TIME, .now = 50};
	int starts, events, torn;
	struct dl_tape *t;
	struct dl_err e;
	int fd;

	unlink(path);
	t = open_tape(40);
	for (int i = 0; i < 10000; i++)
		dl_tape_event(t, &ev, NULL, i);
	must(dl_tape_close(t, &e), &e, "close");
	ok(read_tape(&starts, &events, &torn, &e) == DL_NO && starts == 1 &&
			events == 10000 && !torn,
		"a file of 10000 events");
	fd = open(path, O_WRONLY | O_APPEND);
	if (fd < 0 || dl_write_full(fd, "{\"event\":\"ti", 12))
		exit(1);
	close(fd);
	ok(read_tape(&starts, &events, &torn, &e) == DL_NO && events == 10000 &&
			torn,
		"half a line at the end is told, not believed");
	t = open_tape(3);
	ev.now = 4;
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_close(t, &e), &e, "close");
	ok(read_tape(&starts, &events, &torn, &e) == DL_NO && starts == 2 &&
			events == 10001 && !torn,
		"and cut off by the next start, whose time is its own");
	t = open_tape(3);
	ev.now = 2;
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_close(t, &e), &e, "close");
	ok(read_tape(&starts, &events, &torn, &e) == DL_DATA &&
			strstr(e.text, "line 10005: time runs backwards"),
		"%s", e.text);
	put("{\"event\":\"time\",\"wall\":1,\"now\":2}\n");
	ok(read_tape(&starts, &events, &torn, &e) == DL_DATA &&
			strstr(e.text, "line 1: an event before any start"),
		"%s", e.text);
	put("");
	ok(read_tape(&starts, &events, &torn, &e) == DL_NO && !torn,
		"an empty tape is a tape");
	ok(dl_tape_open(&t, folder, &(struct dl_tape_start){0}, 0, 0, &e) ==
				DL_CANTCREAT &&
			!t,
		"%s", e.text);
}

/* What only the lines before tell: more fragments than the run has. */
static void test_range(void)
{
	struct dl_sync_event ev = {.kind = DL_EV_MERGED, .fragment = P};
	int starts, events, torn;
	struct dl_tape *t;
	struct dl_err e;

	unlink(path);
	t = open_tape(0);
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_close(t, &e), &e, "close");
	ok(read_tape(&starts, &events, &torn, &e) == DL_DATA &&
			strstr(e.text, "line 2: fragment 4 of 4"),
		"%s", e.text);
}

static void test_full_disk(void)
{
	struct dl_sync_event ev = {.kind = DL_EV_TIME, .now = 5};
	int starts, events, torn, told = 0;
	struct dl_tape *t;
	struct dl_err e;

	unlink(path);
	t = open_tape(1);
	for (int i = 0; i < 100; i++) {
		dl_tape_event(t, &ev, NULL, i);
		faults_arm(FAULT_FAIL, i % 3);
		told += dl_tape_flush(t, &e) == DL_IOERR;
		faults_disarm();
	}
	ok(told == 33 && strstr(e.text, path), "told: %s", e.text);
	must(dl_tape_close(t, &e), &e, "close");
	ok(read_tape(&starts, &events, &torn, &e) == DL_NO && events == 100,
		"what could not be written is written later");
}

static void test_backlog(void)
{
	struct dl_sync_event ev = {.kind = DL_EV_TIME, .now = 5};
	int starts, events, torn, lost = 0;
	struct dl_tape *t;
	struct dl_err e;

	unlink(path);
	t = open_tape(1);
	for (size_t i = 0; i < DL_TAPE_BACKLOG / 30; i++)
		dl_tape_event(t, &ev, NULL, 0);
	ok(dl_tape_flush(t, &e) == DL_IOERR && strstr(e.text, "ends here"),
		"a backlog past its limit ends the tape: %s", e.text);
	dl_tape_event(t, &ev, NULL, 0);
	lost = dl_tape_close(t, &e);
	ok(lost == DL_IOERR &&
			read_tape(&starts, &events, &torn, &e) == DL_NO &&
			events > 100000 && !torn,
		"without a gap before the end");
}

/* Everything the core decides, as text. */
static void note_action(void *out, const struct dl_sync_action *a)
{
	dl_buf_printf(out, "%d %s %u %llu %llu.%llu %d %d %zu\n", a->kind,
		a->learner ? a->learner : "-", a->fragment,
		(unsigned long long)a->step,
		(unsigned long long)a->version.epoch,
		(unsigned long long)a->version.number, a->taken, a->refusal,
		a->parts);
}

static struct dl_trail trail; /* of the core at work */

static void note_actions(
	struct dl_sync *core, struct dl_buf *out, uint32_t *merge)
{
	struct dl_sync_action a;

	while (dl_sync_next(core, &a)) {
		dl_trail_add(&trail, &a);
		note_action(out, &a);
		if (a.kind == DL_ACT_MERGE)
			*merge |= 1u << a.fragment;
	}
}

static void feed(struct dl_sync *core, struct dl_tape *t,
	const struct dl_sync_event *ev, struct dl_buf *out, uint32_t *merge)
{
	struct dl_tape_made made = {.values = ""};

	memset(made.values, '0', DL_HASH_HEX - 1);
	memset(made.momentum, '0', DL_HASH_HEX - 1);
	dl_trail_hex(&trail, made.trail);
	made.alike = (struct dl_alike)DL_ALIKE_UNKNOWN;
	dl_tape_event(t, ev, ev->kind == DL_EV_MERGED ? &made : NULL, ev->now);
	dl_sync_event(core, ev);
	note_actions(core, out, merge);
}

/* Two learners that step, push and now and then leave. */
static void drive(struct dl_sync *core, struct dl_tape *t, struct dl_rng *r,
	struct dl_buf *out)
{
	static const char *const names[] = {"a", "b"};
	uint64_t clock[2] = {0, 0}, seq = dl_sync_epoch(core) * 1000;
	struct dl_sync_event ev = {.now = 100};
	struct dl_version versions[P] = {{0, 0}};
	uint32_t merge = 0;

	dl_trail_init(&trail);
	for (int i = 0; i < 2000; i++) {
		size_t who = dl_rng_below(r, 2);
		uint64_t dice = dl_rng_below(r, 100);

		ev.now += (int64_t)dl_rng_below(r, DL_SECOND);
		ev.learner = names[who];
		ev.instance = who + 1;
		ev.clock = ev.steps = ev.step = clock[who];
		ev.tokens = 64 * clock[who];
		ev.loss = 2;
		ev.fragment = (uint32_t)dl_rng_below(r, P);
		ev.versions = versions;
		ev.kind = dice < 3    ? DL_EV_JOIN
			  : dice < 4  ? DL_EV_LEAVE
			  : dice < 60 ? DL_EV_STEP
				      : DL_EV_PUSH;
		clock[who] += ev.kind == DL_EV_STEP;
		if (ev.kind == DL_EV_PUSH) {
			ev.seq = ++seq;
			ev.steps = 1;
			ev.tokens = 64;
			ev.base = dl_sync_version(core, ev.fragment);
			ev.norm = dl_rng_uniform(r);
			ev.push = seq;
		}
		feed(core, t, &ev, out, &merge);
		for (uint32_t p = 0; p < P; p++)
			if (merge >> p & 1) {
				merge &= ~(1u << p);
				ev.kind = DL_EV_MERGED;
				ev.fragment = p;
				ev.version = dl_sync_version(core, p);
				ev.version.number++;
				feed(core, t, &ev, out, &merge);
			}
	}
}

static int note_start(
	void *ctx, const struct dl_tape_start *s, struct dl_err *e)
{
	(void)s;
	(void)e;
	dl_buf_str(ctx, "start\n");
	return 0;
}

static int try_replay(struct dl_replay *v, struct dl_buf *out, struct dl_err *e)
{
	const struct dl_replay_watcher w = {
		.ctx = out, .start = note_start, .action = note_action};
	struct dl_tape_reader r;
	int fd, rc;

	must(dl_open_read(path, &fd, e), e, "open");
	dl_tape_reader_init(&r, fd, path);
	rc = dl_replay(v, &r, &w, e);
	dl_tape_reader_release(&r);
	close(fd);
	return rc;
}

static void replay(struct dl_replay *v, struct dl_buf *out)
{
	struct dl_err e;

	must(try_replay(v, out, &e), &e, "replay");
}

static int same_state(const struct dl_sync *a, const struct dl_sync *b)
{
	struct dl_buf x = DL_BUF_INIT, y = DL_BUF_INIT;
	struct dl_sync_saved v;
	int same;

	dl_sync_save(a, UINT32_MAX, &v);
	dl_saved_write(&x, &v, "");
	dl_sync_saved_release(&v);
	dl_sync_save(b, UINT32_MAX, &v);
	dl_saved_write(&y, &v, "");
	dl_sync_saved_release(&v);
	same = x.len == y.len && !memcmp(x.data, y.data, x.len);
	dl_buf_free(&x);
	dl_buf_free(&y);
	return same;
}

/* Line n of text, from 1; its length goes to size. */
static char *line_of(struct dl_buf *text, int n, size_t *size)
{
	char *at = dl_buf_cstr(text);

	while (--n)
		at = strchr(at, '\n') + 1;
	*size = (size_t)(strchr(at, '\n') + 1 - at);
	return at;
}

/* The number of the n-th line from there on in which word occurs. */
static int find_line(struct dl_buf *text, int from, const char *word, int n)
{
	size_t size;

	for (;; from++) {
		char *at = line_of(text, from, &size);
		char *end = at + size - 1;

		*end = '\0';
		n -= strstr(at, word) != NULL;
		*end = '\n';
		if (!n)
			return from;
	}
}

/* The tape with one of its lines changed: what replay says. */
static int replay_with(struct dl_buf *text, int n, const char *from,
	const char *to, struct dl_err *e)
{
	struct dl_buf changed = DL_BUF_INIT, out = DL_BUF_INIT;
	struct dl_replay v;
	size_t size, before;
	char *line = line_of(text, n, &size), *at = strstr(line, from);
	int rc;

	if (!at || at > line + size)
		return DL_SOFTWARE;
	before = (size_t)(at - (char *)text->data);
	dl_buf_add(&changed, text->data, before);
	dl_buf_str(&changed, to);
	before += strlen(from);
	dl_buf_add(&changed, text->data + before, text->len - before);
	must(dl_write_file(path, changed.data, changed.len, e), e, "write");
	rc = try_replay(&v, &out, e);
	dl_replay_release(&v);
	dl_buf_free(&changed);
	dl_buf_free(&out);
	return rc;
}

static void expect_at(
	int line, int rc, const struct dl_err *e, const char *fact)
{
	char *want = dl_sprintf("%s: line %d: fragment ", path, line);

	ok(rc == DL_NO && !strncmp(e->text, want, strlen(want)) &&
			strstr(e->text, fact),
		"%s", e->text);
	free(want);
}

/* What a tape says and the core does not do is found, and where. */
static void test_differences(void)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_err e = {0};
	int again, push, merged, rc;

	must(dl_read_file(path, 1 << 24, &text, &e), &e, "read");
	merged = find_line(&text, 1, "\"event\":\"merged\"", 5);
	rc = replay_with(&text, merged, "\"trail\":\"", "\"trail\":\"0", &e);
	ok(rc == DL_DATA, "%s", e.text);
	rc = replay_with(
		&text, merged, "\"version\":\"", "\"version\":\"1", &e);
	expect_at(merged, rc, &e, "that merge was not decided on");
	/* Those that were refused do not matter. */
	for (push = merged, rc = 0; !rc; push++) {
		push = find_line(&text, push, "\"event\":\"push\"", 1);
		rc = replay_with(&text, push, "\"steps\":1", "\"steps\":0", &e);
	}
	expect_at(find_line(&text, push, "\"event\":\"merged\"", 1), rc, &e,
		": ");
	again = find_line(&text, 2, "\"format\"", 1);
	rc = replay_with(&text, again, "\"quorum\":1", "\"quorum\":2", &e);
	expect_at(find_line(&text, again, "\"event\":\"merged\"", 1), rc, &e,
		"not decided");
	rc = replay_with(&text, merged, "\"wall\":", "\"wall\":1", &e);
	ok(!rc, "when an event came by the wall clock decides nothing");
	must(dl_write_file(path, text.data, text.len, &e), &e, "write");
	dl_buf_free(&text);
}

/* A tape goes on without a new start, and half a line is cut off. */
static void test_going_on(struct dl_sync *core, int64_t now)
{
	struct dl_sync_event end = {.kind = DL_EV_END, .now = now};
	int fd = open(path, O_WRONLY | O_APPEND);
	struct dl_buf starts = DL_BUF_INIT;
	struct dl_replay v;
	struct dl_tape *t;
	struct dl_err e;

	ok(write(fd, "{\"event\"", 8) == 8 && !close(fd), "half a line");
	must(dl_tape_continue(&t, path, P, &e), &e, "continue");
	dl_tape_event(t, &end, NULL, 0);
	must(dl_tape_sync(t, &e), &e, "sync");
	must(dl_tape_close(t, &e), &e, "close");
	dl_sync_event(core, &end);
	replay(&v, &starts);
	ok(same_state(core, v.core) && v.now == now,
		"a core goes on where its tape ends");
	dl_replay_release(&v);
	unlink(path);
	ok(dl_tape_continue(&t, path, P, &e) == DL_NOINPUT && !t,
		"no tape to go on with: %s", e.text);
	dl_buf_free(&starts);
}

static void test_replay(void)
{
	struct dl_buf live = DL_BUF_INIT, again = DL_BUF_INIT;
	struct dl_rng r = {dl_rng_key(3, 3), 0};
	struct dl_tape_start s = start();
	struct dl_sync *core = dl_sync_new(&s.config);
	struct dl_replay v;
	struct dl_tape *t;
	struct dl_err e;

	unlink(path);
	must(dl_tape_open(&t, path, &s, 0, 0, &e), &e, "open");
	dl_buf_str(&live, "start\n");
	drive(core, t, &r, &live);
	must(dl_tape_close(t, &e), &e, "close");
	s.restored = 1;
	dl_sync_save(core, UINT32_MAX, &s.saved);
	dl_sync_free(core);
	core = dl_sync_restore(&s.config, &s.saved);
	must(dl_tape_open(&t, path, &s, 0, 0, &e), &e, "open");
	dl_buf_str(&live, "start\n");
	drive(core, t, &r, &live);
	must(dl_tape_sync(t, &e), &e, "sync");
	must(dl_tape_close(t, &e), &e, "close");
	dl_sync_saved_release(&s.saved);

	replay(&v, &again);
	ok(live.len > 10000 && live.len == again.len &&
			!memcmp(live.data, again.data, live.len),
		"replaying a tape with a restart decides the same (%zu bytes)",
		live.len);
	ok(same_state(core, v.core) && v.start.restored && v.now > 100,
		"and leaves the same core");
	test_differences();
	test_going_on(core, v.now + 1);
	dl_sync_free(core);
	dl_replay_release(&v);
	dl_buf_free(&live);
	dl_buf_free(&again);
}

/* As logrotate does it. */
static void test_reopen(void)
{
	struct dl_sync_event ev = {.kind = DL_EV_TIME, .now = 50};
	struct dl_buf old = DL_BUF_INIT, new = DL_BUF_INIT;
	char *moved = dl_sprintf("%s.1", path);
	int starts, events, torn;
	struct dl_tape *t;
	struct dl_err e;

	unlink(path);
	t = open_tape(40);
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_reopen(t, &e), &e, "reopen");
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_flush(t, &e), &e, "flush");
	ok(read_tape(&starts, &events, &torn, &e) == DL_NO && events == 2,
		"a tape that is where it was goes on there");
	if (rename(path, moved))
		exit(1);
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_reopen(t, &e), &e, "reopen");
	dl_tape_event(t, &ev, NULL, 0);
	must(dl_tape_close(t, &e), &e, "close");
	must(dl_read_file(moved, 1 << 20, &old, &e), &e, "read");
	must(dl_read_file(path, 1 << 20, &new, &e), &e, "read");
	dl_buf_add(&old, new.data, new.len);
	must(dl_write_file(path, old.data, old.len, &e), &e, "write");
	ok(new.len &&read_tape(&starts, &events, &torn, &e) == DL_NO &&starts ==
				1 &&
			events == 4,
		"the one that was moved away and the new one are the tape");
	unlink(path);
	t = open_tape(40);
	if (unlink(path) || mkdir(path, 0700))
		exit(1);
	ok(dl_tape_reopen(t, &e) == DL_CANTCREAT && strstr(e.text, path),
		"a tape that cannot be opened again: %s", e.text);
	dl_tape_event(t, &ev, NULL, 0);
	ok(!dl_tape_close(t, &e), "... goes on where it was");
	rmdir(path);
	unlink(moved);
	free(moved);
	dl_buf_free(&old);
	dl_buf_free(&new);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 99;
	path = dl_sprintf("%s/tape", folder);
	test_events();
	test_starts();
	test_strict();
	test_files();
	test_range();
	test_full_disk();
	test_backlog();
	test_replay();
	test_reopen();
	unlink(path);
	rmdir(folder);
	return done_testing();
}
