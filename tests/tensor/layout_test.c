/*
 * Layouts: what the four strategies and the rules make of names and shapes,
 * the text form and what is refused of it.
 */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/rng.h"
#include "tensor/layout.h"
#include "tests/tap.h"

/* A model of names and shapes only. */
struct fake {
	struct dl_model model;
	struct dl_model_tensor tensor[64];
	uint64_t shape[64][2];
};

static int by_name(const void *a, const void *b)
{
	const struct dl_model_tensor *x = a, *y = b;

	return dl_string_compare(&x->info.name, &y->info.name);
}

static void add(struct fake *f, const char *name, size_t n, enum dl_dtype t,
	uint64_t rows, uint64_t columns)
{
	size_t i = f->model.tensors++;
	uint64_t *shape = f->shape[i];

	shape[0] = rows;
	shape[1] = columns;
	f->tensor[i].info = (struct dl_tensor){.name = {name, n},
		.dtype = t,
		.rank = 2,
		.shape = shape,
		.elements = rows * columns};
	f->model.tensor = f->tensor;
	qsort(f->tensor, f->model.tensors, sizeof f->tensor[0], by_name);
}

static void add_f32(struct fake *f, const char *name, uint64_t elements)
{
	add(f, name, strlen(name), DL_F32, 1, elements);
}

static const struct dl_layout_tensor *find(
	const struct dl_layout *l, const char *name)
{
	return dl_layout_find(l, name, strlen(name));
}

static uint32_t fragment(const struct dl_layout *l, const char *name)
{
	return find(l, name)->fragment;
}

static enum dl_rule rule(const struct dl_layout *l, const char *name)
{
	return find(l, name)->rule;
}

static void test_balanced(void)
{
	struct fake f = {0};
	struct dl_plan_options o = {.fragments = 3};
	struct dl_layout l;
	struct dl_err e;

	add_f32(&f, "a", 10);
	add_f32(&f, "b", 30);
	add_f32(&f, "c", 20);
	add_f32(&f, "d", 10);
	add_f32(&f, "e", 0);
	ok(!dl_layout_plan(&l, &f.model, &o, &e), "balanced: plans");
	ok(l.fragments == 3, "balanced: three fragments");
	ok(fragment(&l, "b") == 0 && fragment(&l, "c") == 1 &&
			fragment(&l, "a") == 2 && fragment(&l, "d") == 2,
		"balanced: largest first, to the lightest");
	ok(fragment(&l, "e") == 1, "balanced: ties go to the lowest");
	ok(l.fragment[2].elements == 20 && find(&l, "d")->offset == 10,
		"balanced: packed by name");
	dl_layout_release(&l);
	o.fragments = 100;
	ok(!dl_layout_plan(&l, &f.model, &o, &e) && l.fragments == 4,
		"balanced: no more fragments than tensors with elements");
	dl_layout_release(&l);
}

static void test_strategies(void)
{
	static const char *const names[] = {"model.embed_tokens.weight",
		"model.layers.0.a", "model.layers.0.b", "model.layers.1.a",
		"model.layers.2.a", "model.layers.10.a", "model.norm",
		"lm_head.weight"};
	struct fake f = {0};
	struct dl_plan_options o = {.strategy = DL_LAYER, .fragments = 2};
	struct dl_layout l;
	struct dl_err e;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		add_f32(&f, names[i], 4);
	ok(!dl_layout_plan(&l, &f.model, &o, &e), "layer: plans");
	ok(fragment(&l, names[0]) == 0 && fragment(&l, names[2]) == 0 &&
			fragment(&l, names[3]) == 0 &&
			fragment(&l, names[4]) == 1 &&
			fragment(&l, names[5]) == 1 &&
			fragment(&l, names[6]) == 1 &&
			fragment(&l, names[7]) == 1,
		"layer: contiguous groups of layers, by number");
	ok(rule(&l, names[0]) == DL_MEAN && rule(&l, names[7]) == DL_MEAN &&
			rule(&l, names[6]) == DL_RDA,
		"mean for embeddings and the head");
	dl_layout_release(&l);
	o.strategy = DL_STRIDED;
	ok(!dl_layout_plan(&l, &f.model, &o, &e) &&
			fragment(&l, names[1]) == 0 &&
			fragment(&l, names[3]) == 1 &&
			fragment(&l, names[4]) == 0 &&
			fragment(&l, names[5]) == 1,
		"strided: layer i to fragment i mod P");
	dl_layout_release(&l);
	o.strategy = DL_TENSOR;
	o.fragments = 4;
	ok(!dl_layout_plan(&l, &f.model, &o, &e) && l.fragments == 4 &&
			l.fragment[0].tensors == 2 &&
			l.fragment[3].tensors == 2 &&
			fragment(&l, "lm_head.weight") == 0,
		"tensor: runs of equally many");
	dl_layout_release(&l);
}

static void test_rules(void)
{
	static struct dl_plan_choice choices[] = {
		{.pattern = "frozen.*", .skip = 1},
		{.pattern = "x.*", .rule = DL_STAT},
		{.pattern = "x.special", .rule = DL_MEAN},
		{.pattern = "tied", .rule = DL_ALIAS, .alias = "wte"}};
	struct dl_plan_options o = {.fragments = 2,
		.choice = choices,
		.choices = sizeof choices / sizeof *choices};
	struct fake f = {0};
	struct dl_layout l;
	struct dl_err e;

	add_f32(&f, "frozen.w", 4);
	add_f32(&f, "wte", 4);
	add_f32(&f, "tied", 4);
	add_f32(&f, "x.y", 40);
	add_f32(&f, "x.special", 1);
	add_f32(&f, "bn.running_var", 1);
	add(&f, "steps", 5, DL_I64, 1, 1);
	add(&f, "f8", 2, DL_F8_E4M3, 1, 1);
	ok(!dl_layout_plan(&l, &f.model, &o, &e), "rules: plans");
	ok(!find(&l, "frozen.w"), "rules: what is skipped stays local");
	ok(!find(&l, "f8") &&
			strstr(dl_buf_cstr(&l.notes), "local\tf8\tF8_E4M3"),
		"rules: no math on F8, with a note");
	ok(rule(&l, "x.y") == DL_STAT && rule(&l, "x.special") == DL_MEAN,
		"rules: the last choice wins");
	ok(rule(&l, "steps") == DL_LAST &&
			rule(&l, "bn.running_var") == DL_STAT,
		"rules: integers and running statistics");
	ok(rule(&l, "tied") == DL_ALIAS &&
			fragment(&l, "tied") == fragment(&l, "wte") &&
			find(&l, "tied")->offset == find(&l, "wte")->offset,
		"rules: an alias lies where its target is");
	ok(l.fragment[1].elements == 4 + 1 + 1 + 1,
		"rules: an alias takes no room");
	dl_layout_release(&l);
}

static void test_text(void)
{
	static const char odd[] = "#\t\n\\\x01\0x\xc3\xa9";
	struct fake f = {0};
	struct dl_plan_options o = {.fragments = 2};
	struct dl_layout l, again;
	struct dl_buf a = DL_BUF_INIT, b = DL_BUF_INIT;
	struct dl_err e;

	add(&f, odd, sizeof odd - 1, DL_BF16, 2, 3);
	add(&f, "", 0, DL_F32, 0, 7);
	add_f32(&f, "w", 5);
	ok(!dl_layout_plan(&l, &f.model, &o, &e), "text: plans odd names");
	dl_layout_write(&l, &a);
	ok(!dl_layout_parse(&again, (const char *)a.data, a.len, &e),
		"text: reads what it writes");
	dl_layout_write(&again, &b);
	ok(a.len == b.len && !memcmp(a.data, b.data, a.len) &&
			!strcmp(l.hash, again.hash),
		"text: the same bytes and hash");
	ok(!!strstr(dl_buf_cstr(&a),
		   "\n\\x23\\t\\n\\\\\\x01\\x00x\xc3\xa9\tBF16\t2x3\t6\t"),
		"text: names are escaped");
	ok(dl_layout_find(&again, odd, sizeof odd - 1) &&
			dl_layout_find(&again, "", 0),
		"text: and unescaped");
	dl_layout_release(&l);
	dl_layout_release(&again);
	dl_buf_free(&a);
	dl_buf_free(&b);
}

#define HEAD "# format\t1\n"

static const struct {
	const char *text, *fact;
} refused[] = {
	{"", "no \"# format\" line"},
	{"a\tF32\t2\t2\t0\trda\n", "no \"# format\" line"},
	{"# format\t2\na\tF32\t2\t2\t0\trda\n", "line 1: unknown format"},
	{HEAD "__metadata__\tF32\t2\t2\t0\trda\n",
		"line 2: a tensor named __metadata__"},
	{HEAD, "no tensor"},
	{HEAD "\n", "line 2: not 6 columns"},
	{HEAD "a\tF32\t2\t2\t0\n", "line 2: not 6 columns"},
	{HEAD "a\tF32\t2\t2\t0\trda\t\n", "line 2: not 6 columns"},
	{HEAD "a\tF32\t2\t2\t0\trda", "line 2: has no end"},
	{HEAD "a\\q\tF32\t2\t2\t0\trda\n", "line 2: bad name"},
	{HEAD "a\\\tF32\t2\t2\t0\trda\n", "line 2: bad name"},
	{HEAD "a\\x8\tF32\t2\t2\t0\trda\n", "line 2: bad name"},
	{HEAD "\\x80\tF32\t2\t2\t0\trda\n", "line 2: bad name"},
	{HEAD "\xff\tF32\t2\t2\t0\trda\n", "line 2: bad name"},
	{HEAD "\xed\xa0\x80\tF32\t2\t2\t0\trda\n", "line 2: bad name"},
	{HEAD "a\tF33\t2\t2\t0\trda\n", "line 2: unknown dtype"},
	{HEAD "a\tF8_E4M3\t2\t2\t0\trda\n", "line 2: cannot merge dtype"},
	{HEAD "a\tF32\t\t2\t0\trda\n", "line 2: bad shape"},
	{HEAD "a\tF32\t2x\t2\t0\trda\n", "line 2: bad shape"},
	{HEAD "a\tF32\t02\t2\t0\trda\n", "line 2: bad shape"},
	{HEAD "a\tF32\t-2\t2\t0\trda\n", "line 2: bad shape"},
	{HEAD "a\tF32\t2x3\t5\t0\trda\n", "line 2: shape has 6 elements"},
	{HEAD "a\tF32\t4294967296x4294967296\t0\t0\trda\n",
		"line 2: shape is too large"},
	{HEAD "a\tF32\t18446744073709551616\t0\t0\trda\n", "line 2: bad shape"},
	{HEAD "a\tF32\t2\t2\t-1\trda\n", "line 2: bad fragment"},
	{HEAD "a\tF32\t2\t2\t1\trda\n", "line 2: fragment 1, but"},
	{HEAD "a\tF32\t2\t2\t4294967296\trda\n", "line 2: bad fragment"},
	{HEAD "a\tF32\t2\t2\t0\tmedian\n", "line 2: unknown rule"},
	{HEAD "a\tF32\t2\t2\t0\tmean=b\n", "line 2: unknown rule"},
	{HEAD "a\tF32\t2\t2\t0\talias\n", "line 2: unknown rule"},
	{HEAD "a\tF32\t2\t2\t0\trda\nb\tF32\t2\t2\t1\trda\n"
	      "a\tF32\t2\t2\t0\trda\n",
		"line 4: the tensor of line 2 again"},
	{HEAD "a\tF32\t2\t2\t0\trda\nb\tF32\t2\t2\t2\trda\n"
	      "c\tF32\t2\t2\t2\trda\n",
		"fragment 1 has no tensor"},
	{HEAD "a\tF32\t2\t2\t0\talias=b\n", "line 2: tied to a tensor that"},
	{HEAD "a\tF32\t2\t2\t0\talias=a\n", "line 2: tied to a tensor that"},
	{HEAD "a\tF32\t2\t2\t0\talias=b\nb\tF32\t3\t3\t0\trda\n",
		"line 2: of other shape"},
	{HEAD "a\tF32\t2\t2\t0\talias=b\nb\tF16\t2\t2\t0\trda\n",
		"line 2: of other shape or dtype"},
	{HEAD "a\tF32\t2\t2\t1\talias=b\nb\tF32\t2\t2\t0\trda\n",
		"line 2: in another fragment"},
	{HEAD "a\tF32\t1152921504606846976\t1152921504606846976\t0\trda\n"
	      "b\tF32\t1\t1\t0\trda\n",
		"line 3: the model is too large"},
};

static void test_refused(void)
{
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		struct dl_layout l;
		struct dl_err e = {0};
		const char *text = refused[i].text;

		ok(dl_layout_parse(&l, text, strlen(text), &e) == DL_DATA &&
				strstr(e.text, refused[i].fact),
			"refused: %s (%s)", refused[i].fact, e.text);
	}
}

/* Whatever is read is refused, or is a layout that is written the same. */
static void test_mutations(void)
{
	static const char good[] = HEAD "a\tF32\t2x3\t6\t0\trda\n"
		"b\\n\\x00\tBF16\t-\t1\t1\tmean\n"
		"c\tF32\t2x3\t6\t0\talias=a\n# note\nd\tI8\t0\t0\t2\tlast\n";
	static const char bytes[] = "\t\n\\#x=-0123456789aF\xff";
	struct dl_rng r = {1, 0};
	size_t taken = 0, differ = 0, other = 0;

	for (int i = 0; i < 5000; i++) {
		char text[sizeof good];
		struct dl_buf a = DL_BUF_INIT, b = DL_BUF_INIT;
		struct dl_layout l, again;
		struct dl_err e;
		size_t n = sizeof good - 1 - dl_rng_below(&r, 2);
		int rc;

		memcpy(text, good, n);
		for (uint64_t k = dl_rng_below(&r, 3); k--;)
			text[dl_rng_below(&r, n)] = bytes[dl_rng_below(&r,
				sizeof bytes - 1)];
		rc = dl_layout_parse(&l, text, n, &e);
		other += rc && rc != DL_DATA;
		if (rc)
			continue;
		taken++;
		dl_layout_write(&l, &a);
		if (!dl_layout_parse(&again, (char *)a.data, a.len, &e))
			dl_layout_write(&again, &b);
		differ += a.len != b.len || memcmp(a.data, b.data, a.len)
			|| strcmp(l.hash, again.hash);
		dl_layout_release(&l);
		dl_layout_release(&again);
		dl_buf_free(&a);
		dl_buf_free(&b);
	}
	ok(taken > 500 && taken < 4500 && !differ && !other,
		"mutations: %zu taken, %zu of them not the same again", taken,
		differ);
}

/* The value of the next key of the plan, which the file has in this order. */
static enum dl_json_token value(struct dl_json *j, const char *key)
{
	if (dl_json_next(j) != DL_JSON_KEY || !dl_json_is(j, key))
		return DL_JSON_BAD;
	return dl_json_next(j);
}

static void read_sizes(struct dl_json *j, struct fake *f, struct dl_buf *names)
{
	dl_buf_reserve(names, 4096);
	while (dl_json_next(j) == DL_JSON_ARRAY) {
		char *name = (char *)names->data + names->len;
		uint64_t elements = 0;

		dl_json_next(j);
		dl_buf_add(names, j->text, j->len);
		dl_buf_byte(names, 0);
		dl_json_next(j);
		dl_json_u64(j, &elements);
		dl_json_next(j);
		add_f32(f, name, elements);
	}
}

static int same_fragments(struct dl_json *j, const struct dl_layout *l)
{
	size_t n = 0;

	while (dl_json_next(j) == DL_JSON_KEY) {
		const struct dl_layout_tensor *t =
			dl_layout_find(l, j->text, j->len);
		uint64_t want = UINT64_MAX;

		dl_json_next(j);
		dl_json_u64(j, &want);
		if (!t || t->fragment != want)
			return 0;
		n++;
	}
	return n == l->tensors;
}

static void test_vector(struct dl_json *j)
{
	struct fake f = {0};
	struct dl_buf names = DL_BUF_INIT;
	struct dl_plan_options o = {0};
	struct dl_layout l;
	struct dl_err e;
	uint64_t p = 0;

	value(j, "P");
	dl_json_u64(j, &p);
	o.fragments = (uint32_t)p;
	value(j, "sizes");
	read_sizes(j, &f, &names);
	ok(!dl_layout_plan(&l, &f.model, &o, &e)
			&& value(j, "fragment_of") == DL_JSON_OBJECT
			&& same_fragments(j, &l),
		"vectors: the plan of %zu tensors in %u fragments",
		f.model.tensors, o.fragments);
	dl_layout_release(&l);
	value(j, "loads");
	dl_json_skip(j, DL_JSON_ARRAY);
	dl_json_next(j);
	dl_buf_free(&names);
}

static void test_vectors(void)
{
	const char *top = getenv("abs_top_srcdir");
	char *path = dl_sprintf("%s/../shared/vectors/merge.json",
		top ? top : ".");
	struct dl_buf text = DL_BUF_INIT;
	struct dl_json j;
	struct dl_err e;

	if (dl_read_file(path, 1 << 24, &text, &e)) {
		skip("%s", e.text);
	} else {
		dl_json_init(&j, text.data, text.len, &e);
		dl_json_next(&j);
		while (dl_json_next(&j) == DL_JSON_KEY
			&& !dl_json_is(&j, "balanced_plans"))
			dl_json_skip(&j, dl_json_next(&j));
		dl_json_next(&j);
		while (dl_json_next(&j) == DL_JSON_OBJECT)
			test_vector(&j);
		dl_json_release(&j);
	}
	dl_buf_free(&text);
	free(path);
}

int main(void)
{
	test_balanced();
	test_strategies();
	test_rules();
	test_text();
	test_refused();
	test_mutations();
	test_vectors();
	return done_testing();
}
