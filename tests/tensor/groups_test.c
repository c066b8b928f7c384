/*
 * Which bytes of a state a newcomer takes together.
 */
#include "tensor/groups.h"
#include "tests/tap.h"

static const char layout[] = "# format\t1\n"
			     "a.w\tF32\t2\t2\t0\trda\n"
			     "b\tF32\t1\t1\t1\trda\n"
			     "tied\tF32\t1\t1\t1\talias=b\n"
			     "w\tBF16\t3\t3\t2\trda\n";

static struct dl_layout l;

/* Entries of NAME DTYPE ELEMENTS, one after another from byte 0. */
struct entry {
	const char *name, *dtype;
	unsigned elements, bytes;
};

static void make(struct dl_header *h, const struct entry *entry, size_t n)
{
	struct dl_buf json = DL_BUF_INIT;
	unsigned at = 0;
	struct dl_err e;

	for (size_t i = 0; i < n; i++) {
		dl_buf_printf(&json,
			"%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%u],"
			"\"data_offsets\":[%u,%u]}",
			i ? "," : "{", entry[i].name, entry[i].dtype,
			entry[i].elements, at, at + entry[i].bytes);
		at += entry[i].bytes;
	}
	dl_buf_str(&json, "}");
	if (dl_header_parse(h, json.data, json.len, &e))
		ok(0, "the test's own header: %s", e.text);
	dl_buf_free(&json);
}

/* The ranges of a group as text: "OFFSET+BYTES ...". */
static const char *ranges(
	const struct dl_groups *g, const struct dl_header *h, size_t group)
{
	static char text[200];
	size_t at = g->first[group], used = 0;
	uint64_t offset, bytes;

	text[0] = '\0';
	while (dl_groups_range(g, h, &at, g->first[group + 1], &offset, &bytes))
		used += (size_t)snprintf(text + used, sizeof text - used,
			"%s%llu+%llu", used ? " " : "",
			(unsigned long long)offset, (unsigned long long)bytes);
	return text;
}

static void is_group(const struct dl_groups *g, const struct dl_header *h,
	size_t group, const char *want, const char *what)
{
	const char *got = ranges(g, h, group);

	ok(!strcmp(got, want), "%s (%s)", what, got);
}

static const struct entry whole[] = {
	{"exp_avg.a.w", "F32", 2, 8},
	{"a.w", "F32", 2, 8},
	{"exp_avg.b", "F32", 1, 4},
	{"w", "BF16", 3, 6},
	{"x.w", "F32", 3, 12},
	{"deep.exp.a.w", "F64", 1, 8},
	{"steps", "I64", 1, 8},
	{"none", "F32", 0, 0},
	{"b", "F32", 1, 4},
	{"tied", "F32", 1, 4},
};
enum { WHOLE = sizeof whole / sizeof *whole };

static void test_groups(void)
{
	struct dl_groups g;
	struct dl_header h;
	struct dl_err e;

	make(&h, whole, WHOLE);
	ok(!dl_groups_make(&g, &l, &h, &e) && g.groups == 4,
		"a group a fragment and one more");
	is_group(&g, &h, 0, "0+16 38+8",
		"neighbours are one range; the longest name counts");
	is_group(&g, &h, 1, "16+4 54+8", "what is tied goes with it");
	is_group(&g, &h, 2, "20+18", "the rest of a name is a name");
	is_group(&g, &h, 3, "46+8", "the rest; what is empty is none");
	dl_groups_release(&g);
	dl_header_release(&h);
}

static void refuses(size_t which, struct entry other, const char *fact)
{
	struct entry entry[WHOLE];
	struct dl_groups g;
	struct dl_header h;
	struct dl_err e = {0};

	memcpy(entry, whole, sizeof whole);
	entry[which] = other;
	make(&h, entry, WHOLE);
	ok(dl_groups_make(&g, &l, &h, &e) == DL_DATA && strstr(e.text, fact) &&
			!g.first,
		"refused: %s", e.text);
	dl_groups_release(&g);
	dl_header_release(&h);
}

static void test_same(void)
{
	struct entry entry[WHOLE];
	struct dl_header a, b;

	make(&a, whole, WHOLE);
	memcpy(entry, whole, sizeof whole);
	make(&b, entry, WHOLE);
	ok(dl_groups_same(&a, &b), "the same tensors at the same places");
	dl_header_release(&b);
	make(&b, entry, WHOLE - 1);
	ok(!dl_groups_same(&a, &b), "not with one less");
	dl_header_release(&b);
	entry[6].name = "count";
	make(&b, entry, WHOLE);
	ok(!dl_groups_same(&a, &b), "nor another name");
	dl_header_release(&b);
	entry[6] = (struct entry){"steps", "F64", 1, 8};
	make(&b, entry, WHOLE);
	ok(!dl_groups_same(&a, &b), "nor another dtype");
	dl_header_release(&b);
	entry[6] = whole[7];
	entry[7] = whole[6];
	make(&b, entry, WHOLE);
	ok(!dl_groups_same(&a, &b), "nor another order");
	dl_header_release(&b);
	dl_header_release(&a);
}

int main(void)
{
	struct dl_err e;

	if (dl_layout_parse(&l, layout, sizeof layout - 1, &e))
		return 1;
	test_groups();
	refuses(1, (struct entry){"a.v", "F32", 2, 8}, "\"a.w\" is missing");
	refuses(1, (struct entry){"a.w", "F32", 3, 12}, "another shape");
	refuses(1, (struct entry){"a.w", "C64", 2, 16}, "C64, no number");
	refuses(9, (struct entry){"tied", "F32", 2, 8}, "another shape");
	test_same();
	dl_layout_release(&l);
	return done_testing();
}
