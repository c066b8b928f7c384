#include <math.h>
#include <string.h>

#include "link/message.h"
#include "tensor/coded.h"
#include "tests/tap.h"

static const struct dl_limits limits = DL_LIMITS_CONTROL;
static const char hash[] =
	"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static const char public_key[] = "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=";
#define KEYED "tcp:YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE=@"
static const struct dl_version versions[3] = {{1, 2}, {3, 4}, {0, 0}};
static const struct dl_version origins[3] = {
	{7, UINT64_MAX}, {UINT64_MAX, 0}, {1, 1}};
static const uint64_t seqs[3] = {0, UINT64_MAX, 5};

static int same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static int same_versions(
	const struct dl_version *a, const struct dl_version *b, uint32_t n)
{
	if (!a || !b)
		return a == b;
	while (n--)
		if (dl_version_cmp(a[n], b[n]))
			return 0;
	return 1;
}

static int same_loss(const struct dl_message *a, const struct dl_message *b)
{
	return a->kind != DL_MSG_STEP || a->loss == b->loss ||
	       (isnan(a->loss) && isnan(b->loss));
}

static int same(const struct dl_message *a, const struct dl_message *b)
{
	return a->kind == b->kind && a->role == b->role &&
	       same_text(a->run, b->run) && same_text(a->name, b->name) &&
	       same_text(a->layout, b->layout) &&
	       same_text(a->codecs, b->codecs) &&
	       same_text(a->codec, b->codec) &&
	       same_text(a->global ? a->global : "f32", b->global) &&
	       same_text(a->apply, b->apply) &&
	       same_text(a->serve, b->serve) && same_text(a->key, b->key) &&
	       same_text(a->hash, b->hash) && a->offset == b->offset &&
	       a->bytes == b->bytes &&
	       same_text(a->text, b->text) && a->instance == b->instance &&
	       a->epoch == b->epoch && a->clock == b->clock && a->h == b->h &&
	       a->tau == b->tau && a->wait == b->wait &&
	       (a->kind != DL_MSG_WELCOME || a->slot == b->slot) &&
	       a->streams == b->streams && a->window == b->window &&
	       a->fragment == b->fragment && a->seq == b->seq &&
	       a->step == b->step && a->steps == b->steps &&
	       a->tokens == b->tokens &&
	       dl_version_cmp(a->base, b->base) == 0 &&
	       dl_version_cmp(a->version, b->version) == 0 && same_loss(a, b) &&
	       a->taken == b->taken && a->refusal == b->refusal &&
	       (a->kind != DL_MSG_TAKEN || a->scale == b->scale) &&
	       a->final == b->final && a->code == b->code && a->bye == b->bye &&
	       a->fragments == b->fragments &&
	       same_versions(a->versions, b->versions, a->fragments) &&
	       same_versions(a->origins, b->origins, a->fragments) &&
	       (!a->seqs == !b->seqs) &&
	       (!a->seqs || memcmp(a->seqs, b->seqs, a->fragments * 8) == 0);
}

#define M(k, ...)                                                              \
	{                                                                      \
		.kind = DL_MSG_##k, __VA_ARGS__                                \
	}
static const struct dl_message examples[] = {
	M(HELLO, .role = DL_ROLE_LEARNER, .run = "demo-1", .name = "a.b_c-9",
		.instance = UINT64_MAX, .layout = hash, .codecs = "f32",
		.clock = 77, .steps = 70, .tokens = 7000, .fragments = 3, .versions = versions),
	M(HELLO, .role = DL_ROLE_LEARNER, .name = "first", .instance = 1),
	M(HELLO, .role = DL_ROLE_LEARNER, .name = "wide", .streams = 4,
		.window = 32 << 20),
	M(HELLO, .role = DL_ROLE_STREAM, .name = "wide", .instance = 1),
	M(HELLO, .role = DL_ROLE_OBSERVER),
	M(HELLO, .role = DL_ROLE_LEARNER, .name = "donor",
		.serve = KEYED "[::1]:7077", .key = public_key),
	M(HELLO, .role = DL_ROLE_LEARNER, .name = "donor", .serve = KEYED ":1"),
	M(HELLO, .role = DL_ROLE_JOINER, .run = "demo-1", .clock = 40),
	M(HELLO, .role = DL_ROLE_CHECKPOINT),
	M(STATE, .clock = 41, .bytes = UINT64_MAX, .fragments = 3,
		.versions = versions),
	M(STATE, .bytes = 1),
	M(FETCH, .offset = UINT64_MAX, .bytes = DL_FETCH_BYTES),
	M(GUEST, .name = "five", .key = public_key),
	M(GUEST, .key = public_key),
	M(ATTACHED),
	M(HELLO, .role = DL_ROLE_ENDER, .name = "me"),
	M(WELCOME, .run = "demo-1", .epoch = 2, .clock = UINT64_MAX, .h = 24,
		.tau = 2, .apply = "blend:0.5", .wait = 1, .global = "int4",
		.name = "site2.7", .slot = 7,
		.fragments = 3,
		.versions = versions, .origins = origins, .seqs = seqs,
		.text = "# layout\ntensor\tF32\n"),
	M(WELCOME, .run = "r", .epoch = 1, .h = 1, .fragments = 3,
		.slot = DL_SLOT_NONE,
		.versions = origins, .origins = versions, .seqs = seqs,
		.text = ""),
	M(ERROR, .code = DL_NOPERM, .text = "say \"please\"\n\xc3\xa9"),
	M(STEP, .clock = 10, .steps = 9, .tokens = UINT64_MAX,
		.loss = 0.1234567890123456789),
	M(STEP, .clock = 10, .steps = 9, .tokens = 8, .loss = -1e300),
	M(STEP, .clock = 10, .steps = 9, .tokens = 8, .loss = NAN),
	M(OPEN, .fragment = UINT32_MAX - 1, .step = 24),
	M(TAKEN, .fragment = 0, .seq = 1, .taken = DL_TAKEN_ROUND, .scale = 1),
	M(TAKEN, .fragment = 0, .seq = 1, .taken = DL_TAKEN_REFUSED,
		.refusal = DL_REFUSED_NORM, .scale = 1),
	M(TAKEN, .fragment = 9, .seq = UINT64_MAX, .taken = DL_TAKEN_WAITING,
		.scale = 1.0 / 3),
	M(WANT, .fragment = 3),
	M(PEERS, .text = "a 12 " KEYED "h:1\nb 0 " KEYED "[::1]:2\n"),
	M(PEERS, .text = ""),
	M(END, .step = 2000),
	M(APPLIED, .fragment = 3, .version = {9, 10}),
	M(BYE, .bye = DL_BYE_RESTARTING),
	M(BYE, .bye = DL_BYE_DONE),
	M(BYE, .bye = DL_BYE_LEAVING),
};

static void test_round_trip(const struct dl_message *m)
{
	struct dl_buf once = DL_BUF_INIT, again = DL_BUF_INIT;
	struct dl_record r;
	struct dl_message back;
	struct dl_err e = {0};

	dl_message_pack(m, &once);
	if (!ok(dl_record_parse(&r, once.data, once.len, limits, &e) == 0,
		    "%s: is a record %s", dl_message_kind_name(m->kind),
		    e.text))
		return;
	ok(dl_message_unpack(&back, &r.header, r.data, &e) == 0 &&
			same(m, &back) &&
			(!back.text || back.text_n == strlen(back.text)),
		"%s: comes back the same %s", dl_message_kind_name(m->kind),
		e.text);
	dl_message_pack(&back, &again);
	ok(once.len == again.len && !memcmp(once.data, again.data, once.len),
		"%s: packs to the same bytes", dl_message_kind_name(m->kind));
	dl_message_release(&back);
	dl_record_release(&r);
	dl_buf_free(&once);
	dl_buf_free(&again);
}

/* A push or global in the codec of q; NULL: in f32. */
static void test_data(const struct dl_message *m, const struct dl_quant *q)
{
	static const char text[] = "# format\t1\n"
				   "y\tF32\t2\t2\t0\trda\n"
				   "a\tBF16\t3\t3\t1\tmean\n"
				   "x\tF32\t2x2\t4\t1\trda\n";
	float values[7] = {1, -2, 3};
	struct dl_buf b = DL_BUF_INIT;
	struct dl_record r;
	struct dl_message back;
	struct dl_coded coded;
	struct dl_layout l;
	struct dl_err e = {0};

	if (!ok(dl_layout_parse(&l, text, strlen(text), &e) == 0, "layout %s",
		    e.text))
		return;
	dl_message_pack_coded(m, &l, q, &b);
	dl_buf_add(&b, values,
		q ? dl_coded_bytes(&l, m->fragment, q) : sizeof(values));
	ok(dl_record_parse(&r, b.data, b.len, limits, &e) == 0 &&
			dl_message_unpack(&back, &r.header, NULL, &e) == 0 &&
			same(m, &back) &&
			dl_coded_open(&coded, &l, m->fragment, &r.header,
				r.data, &e) == 0,
		"%s: comes back the same with its tensors %s",
		dl_message_kind_name(m->kind), e.text);
	dl_coded_release(&coded);
	dl_message_release(&back);
	dl_record_release(&r);
	dl_layout_release(&l);
	dl_buf_free(&b);
}

static const struct dl_message a_part =
	M(PART, .offset = UINT64_MAX - 1, .hash = hash);
static const struct dl_message all_figures = M(FIGURES, .clock = 0);

static void test_carried(const char *what, const struct dl_message *m)
{
	struct dl_buf b = DL_BUF_INIT;
	struct dl_record r;
	struct dl_message back;
	struct dl_err e = {0};

	dl_message_pack_part(m, 3, &b);
	dl_buf_add(&b, "abc", 3);
	ok(dl_record_parse(&r, b.data, b.len, limits, &e) == 0 &&
			dl_message_unpack(&back, &r.header, NULL, &e) == 0 &&
			same(m, &back) && r.header.data_size == 3 &&
			memcmp(r.data, "abc", 3) == 0,
		"%s: comes back the same with its data %s", what, e.text);
	dl_message_release(&back);
	dl_record_release(&r);
	dl_buf_free(&b);
}

/* A record made word by word: "key=value" pairs, then tensors that are not
 * NULL. */
struct words {
	const char *says; /* in the refusal; NULL when it is taken */
	const char *pair[16];
};

static int unpack_words(const struct words *t, const char *tensor,
	enum dl_dtype dtype, unsigned rank, const uint64_t *shape,
	struct dl_err *e)
{
	static const unsigned char zeros[1024];
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf b = DL_BUF_INIT;
	struct dl_message m;
	struct dl_record r;
	char key[32];
	int i, code;

	for (i = 0; t->pair[i]; i++) {
		size_t n = strcspn(t->pair[i], "=");

		memcpy(key, t->pair[i], n);
		key[n] = 0;
		dl_writer_meta(&w, key, t->pair[i] + n + 1);
	}
	if (tensor)
		dl_writer_tensor(
			&w, tensor, strlen(tensor), dtype, rank, shape);
	dl_writer_finish(&w, &b, NULL);
	dl_writer_release(&w);
	code = dl_header_parse(&r.header, b.data + 8, b.len - 8, e);
	if (!code)
		code = dl_message_unpack(&m, &r.header, zeros, e);
	if (!code)
		dl_message_release(&m);
	dl_header_release(&r.header);
	dl_buf_free(&b);
	return code;
}

#define F "dl.format=1"
#define PUSH F, "dl.kind=push", "dl.fragment=1", "dl.seq=1", "dl.step=1"
#define PUSH2 "dl.steps=1", "dl.tokens=1", "dl.codec=f32"
#define TAKEN F, "dl.kind=taken", "dl.fragment=1"
#define HELLO                                                                  \
	F, "dl.kind=hello", "dl.run=", "dl.instance=1", "dl.clock=0",          \
		"dl.codecs=f32", "dl.steps=0", "dl.tokens=0"
#define WELCOME                                                                \
	F, "dl.kind=welcome", "dl.run=r", "dl.epoch=1", "dl.clock=0",          \
		"dl.h=1", "dl.tau=0", "dl.apply=", "dl.wait=0",                \
		"dl.fragments=3"
#define JOINER HELLO, "dl.role=joiner", "dl.learner=", "dl.layout="
#define STEP F, "dl.kind=step", "dl.clock=1", "dl.steps=1", "dl.tokens=1"
static const struct words table[] = {
	{NULL, {F, "dl.kind=want", "dl.fragment=4", "dl.later=word"}},
	{NULL, {STEP, "dl.loss=1.5"}},
	{NULL, {STEP}},
	{NULL, {PUSH, PUSH2, "dl.base=1.0"}},
	{NULL, {HELLO, "dl.role=learner", "dl.learner=a", "dl.layout="}},
	{"dl.format", {"dl.kind=want", "dl.fragment=4"}},
	{"dl.format", {"dl.format=2", "dl.kind=want", "dl.fragment=4"}},
	{"without dl.kind", {F, "dl.fragment=4"}},
	{"unknown message \"\"", {F, "dl.kind="}},
	{"unknown message \"wan\"", {F, "dl.kind=wan", "dl.fragment=4"}},
	{"unknown message \"want2\"", {F, "dl.kind=want2", "dl.fragment=4"}},
	{"unknown message \"\\x0a\"", {F, "dl.kind=\n"}},
	{"unknown message \"params\"", {F, "dl.kind=params"}},
	{"want: dl.fragment is missing", {F, "dl.kind=want"}},
	{"want: dl.fragment is \"\"", {F, "dl.kind=want", "dl.fragment="}},
	{"dl.fragment is \"-1\"", {F, "dl.kind=want", "dl.fragment=-1"}},
	{"dl.fragment is \" 1\"", {F, "dl.kind=want", "dl.fragment= 1"}},
	{"dl.fragment is \"1 \"", {F, "dl.kind=want", "dl.fragment=1 "}},
	{"dl.fragment is \"1.0\"", {F, "dl.kind=want", "dl.fragment=1.0"}},
	{"dl.fragment is", {F, "dl.kind=want", "dl.fragment=4294967295"}},
	{"dl.fragment is", {F, "dl.kind=want", "dl.fragment=4294967296"}},
	{"dl.step is", {F, "dl.kind=end", "dl.step=18446744073709551616"}},
	{"dl.code is \"0\"", {F, "dl.kind=error", "dl.code=0", "dl.text=x"}},
	{"dl.code is", {F, "dl.kind=error", "dl.code=256", "dl.text=x"}},
	{"dl.text is missing", {F, "dl.kind=error", "dl.code=1"}},
	{"dl.reason is \"no\"", {F, "dl.kind=bye", "dl.reason=no"}},
	{"push: dl.base is missing", {PUSH, PUSH2}},
	{"push: dl.base is \"1\"", {PUSH, PUSH2, "dl.base=1"}},
	{"dl.base is \"1.\"", {PUSH, PUSH2, "dl.base=1."}},
	{"dl.base is \".1\"", {PUSH, PUSH2, "dl.base=.1"}},
	{"dl.base is \"1.2.3\"", {PUSH, PUSH2, "dl.base=1.2.3"}},
	{"dl.base is", {PUSH, PUSH2, "dl.base=000000000000000000000000001.1"}},
	{"dl.seq is \"0\"", {F, "dl.kind=push", "dl.fragment=1", "dl.seq=0",
				    "dl.step=1", PUSH2, "dl.base=1.0"}},
	{"dl.codec is \"\"", {PUSH, "dl.steps=1", "dl.tokens=1",
				     "dl.codec=", "dl.base=1.0"}},
	{"dl.final is \"2\"",
		{F, "dl.kind=global", "dl.fragment=1", "dl.version=1.0",
			"dl.step=1", "dl.final=2", "dl.codec=f32"}},
	{"dl.base is \"\"",
		{F, "dl.kind=global", "dl.fragment=1", "dl.version=1.0",
			"dl.base=", "dl.step=1", "dl.final=0", "dl.codec=f32"}},
	{"dl.global is \"\"",
		{WELCOME, "dl.global="}},
	{"dl.learner is \"\"", {WELCOME, "dl.learner="}},
	{"dl.learner is \"a/b\"", {WELCOME, "dl.learner=a/b"}},
	{"dl.slot is \"-1\"", {WELCOME, "dl.slot=-1"}},
	{"dl.slot is \"\"", {WELCOME, "dl.slot="}},
	{"dl.slot is \"18446744073709551615\"",
		{WELCOME, "dl.slot=18446744073709551615"}},
	{"dl.taken is \"maybe\"", {TAKEN, "dl.seq=1", "dl.taken=maybe",
					  "dl.scale=1", "dl.refusal=not"}},
	{"dl.refusal", {TAKEN, "dl.seq=1", "dl.taken=round", "dl.scale=1",
			       "dl.refusal=norm"}},
	{"dl.scale is \"0\"", {TAKEN, "dl.seq=1", "dl.taken=refused",
				      "dl.scale=0", "dl.refusal=norm"}},
	{"dl.scale is \"1.5\"", {TAKEN, "dl.seq=1", "dl.taken=refused",
					"dl.scale=1.5", "dl.refusal=norm"}},
	{"dl.scale is \"nan\"", {TAKEN, "dl.seq=1", "dl.taken=refused",
					"dl.scale=nan", "dl.refusal=norm"}},
	{"dl.scale is missing",
		{TAKEN, "dl.seq=1", "dl.taken=refused", "dl.refusal=norm"}},
	{"dl.loss is \"inf\"", {STEP, "dl.loss=inf"}},
	{"dl.loss is \"0x1\"", {STEP, "dl.loss=0x1"}},
	{NULL, {HELLO, "dl.role=learner", "dl.learner=", "dl.layout="}},
	{"dl.learner is \"../x\"",
		{HELLO, "dl.role=learner", "dl.learner=../x", "dl.layout="}},
	{"dl.role is \"boss\"",
		{HELLO, "dl.role=boss", "dl.learner=a", "dl.layout="}},
	{"dl.layout is \"ab\"",
		{HELLO, "dl.role=learner", "dl.learner=a", "dl.layout=ab"}},
	{NULL, {JOINER, "dl.serve=" KEYED "a-1.b:65535"}},
	{"dl.serve is \"\"", {JOINER, "dl.serve="}},
	{"dl.serve is \"unix:/run/s\"", {JOINER, "dl.serve=unix:/run/s"}},
	{"dl.serve is \"exec:", {JOINER, "dl.serve=exec:ssh a@b:1"}},
	{"dl.serve is \"tcp:a:1\"", {JOINER, "dl.serve=tcp:a:1"}},
	{"dl.serve is \"tcp::1\"", {JOINER, "dl.serve=tcp::1"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED "a:0"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED ":0"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED "a"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED "a b:1"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED "a\n:1"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED "a:1@b:1"}},
	{"dl.serve is", {JOINER, "dl.serve=" KEYED "/a:1"}},
	{"dl.key is \"\"", {JOINER, "dl.key="}},
	{"dl.key is \"YQ==\"", {JOINER, "dl.key=YQ=="}},
	{"guest: dl.key is missing", {F, "dl.kind=guest", "dl.learner=a"}},
	{"fetch: dl.bytes is \"0\"",
		{F, "dl.kind=fetch", "dl.offset=0", "dl.bytes=0"}},
	{"state: dl.bytes is missing", {F, "dl.kind=state", "dl.clock=0"}},
	{"part: dl.hash is missing", {F, "dl.kind=part", "dl.offset=0"}},
	{"part: dl.hash is \"\"",
		{F, "dl.kind=part", "dl.offset=0", "dl.hash="}},
};

static void test_table(void)
{
	struct dl_err e;
	size_t i;
	int code;

	for (i = 0; i < sizeof(table) / sizeof(*table); i++) {
		e = (struct dl_err){0};
		code = unpack_words(&table[i], NULL, 0, 0, NULL, &e);
		if (table[i].says)
			ok(code == DL_PROTOCOL && strstr(e.text, table[i].says),
				"refused (%s): %s", table[i].says, e.text);
		else
			ok(code == 0, "taken: line %zu %s", i, e.text);
	}
}

static void test_tensors(void)
{
	static const struct words hello = {
		NULL, {HELLO, "dl.role=learner", "dl.learner=a", "dl.layout="}};
	static const struct words want = {
		NULL, {F, "dl.kind=want", "dl.fragment=1"}};
	static const struct words welcome = {
		NULL, {WELCOME}};
	static const struct words state = {
		NULL, {F, "dl.kind=state", "dl.clock=1", "dl.bytes=1"}};
	static const struct words part = {
		NULL, {F, "dl.kind=part", "dl.offset=0",
			"dl.hash=00112233445566778899aabbccddeeff"
			"00112233445566778899aabbccddeeff"}};
	static const struct {
		const struct words *words;
		const char *tensor;
		enum dl_dtype dtype;
		unsigned rank;
		uint64_t shape[3];
		int good;
	} t[] = {
		{&hello, "versions", DL_U64, 2, {3, 2}, 1},
		{&hello, "versions", DL_U64, 2, {2, 3}, 0},
		{&hello, "versions", DL_U64, 2, {0, 2}, 0},
		{&hello, "versions", DL_U64, 1, {6}, 0},
		{&hello, "versions", DL_U64, 0, {0}, 0},
		{&hello, "versions", DL_U64, 3, {3, 2, 1}, 0},
		{&hello, "versions", DL_F64, 2, {3, 2}, 0},
		{&hello, "other", DL_U64, 2, {3, 2}, 0},
		{&want, "versions", DL_U64, 2, {3, 2}, 0},
		{&welcome, NULL, 0, 0, {0}, 0},
		{&state, NULL, 0, 0, {0}, 1},
		{&state, "versions", DL_U64, 2, {3, 2}, 1},
		{&state, "versions", DL_U64, 2, {0, 2}, 0},
		{&state, "data", DL_U8, 1, {3}, 0},
		{&part, "data", DL_U8, 1, {3}, 1},
		{&part, NULL, 0, 0, {0}, 0},
		{&part, "date", DL_U8, 1, {3}, 0},
		{&part, "data", DL_I8, 1, {3}, 0},
		{&part, "data", DL_U8, 2, {3, 1}, 0},
		{&welcome, "versions", DL_U64, 2, {3, 2}, 0},
	};
	struct dl_err e;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(*t); i++) {
		int code;

		e = (struct dl_err){0};
		code = unpack_words(t[i].words, t[i].tensor, t[i].dtype,
			t[i].rank, t[i].shape, &e);
		ok(code == (t[i].good ? 0 : DL_PROTOCOL), "tensors %zu: %s", i,
			e.text);
	}
}

int main(void)
{
	const struct dl_message push =
		M(PUSH, .fragment = 1, .seq = 3, .step = 4, .base = {1, 2},
			.steps = 5, .tokens = UINT64_MAX, .codec = "f32");
	const struct dl_message global = M(GLOBAL, .fragment = 1,
		.version = {2, 1}, .step = 24, .final = 1, .codec = "f32");
	const struct dl_message update =
		M(GLOBAL, .fragment = 1, .version = {2, 1}, .base = {2, 0},
			.step = 24, .codec = "int4");
	const struct dl_quant int4 = {
		.codec = DL_CODEC_INT4, .block = DL_QUANT_BLOCK};
	size_t i;

	for (i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		test_round_trip(&examples[i]);
	test_data(&push, NULL);
	test_data(&global, NULL);
	test_data(&update, &int4);
	test_carried("part", &a_part);
	test_carried("figures", &all_figures);
	test_table();
	test_tensors();
	return done_testing();
}
