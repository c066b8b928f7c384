#include "tensor/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/num.h"
#include "tensor/name.h"

#define COLUMNS "# name\tdtype\tshape\telements\tfragment\trule\n"
#define FORMAT "# format\t1\n"

/* Room for sums of elements in bytes of f32 without thinking of overflow. */
#define MOST_ELEMENTS (UINT64_C(1) << 60)

enum { LAYOUT_LIMIT = 100000000 }; /* bytes of text */

void dl_layout_release(struct dl_layout *l)
{
	free(l->tensor);
	free(l->fragment);
	free(l->shapes);
	free(l->by_name);
	dl_buf_free(&l->notes);
	dl_buf_free(&l->strings);
	memset(l, 0, sizeof *l);
}

void dl_layout_put_tensor(const struct dl_layout_tensor *t, struct dl_buf *out)
{
	dl_name_escape(out, t->name.s, t->name.n);
	dl_buf_printf(out, "\t%s\t", dl_dtype_name(t->dtype));
	if (!t->rank)
		dl_buf_byte(out, '-');
	for (unsigned i = 0; i < t->rank; i++)
		dl_buf_printf(out, "%s%llu", i ? "x" : "",
			(unsigned long long)t->shape[i]);
	dl_buf_printf(out, "\t%llu\t%u\t%s", (unsigned long long)t->elements,
		(unsigned)t->fragment, dl_rule_name(t->rule));
	if (t->rule == DL_ALIAS) {
		dl_buf_byte(out, '=');
		dl_name_escape(out, t->alias.s, t->alias.n);
	}
	dl_buf_byte(out, '\n');
}

static void put_tensors(const struct dl_layout *l, struct dl_buf *out)
{
	for (size_t i = 0; i < l->tensors; i++)
		dl_layout_put_tensor(&l->tensor[i], out);
}

void dl_layout_write(const struct dl_layout *l, struct dl_buf *out)
{
	dl_buf_str(out, COLUMNS FORMAT);
	if (l->strategy[0])
		dl_buf_printf(out, "# strategy\t%s\n", l->strategy);
	dl_buf_add(out, l->notes.data, l->notes.len);
	put_tensors(l, out);
}

/* A layout being read. */
struct parser {
	struct dl_layout *l;
	uint64_t line;
	uint64_t *lines; /* the line of each tensor */
	uint64_t *shape; /* where the next shape goes */
	int format;	 /* its # line was seen */
	struct dl_err *e;
};

struct column {
	const char *s;
	size_t n;
};

/* A decimal number as we write them: no sign, no zero in front. */
static int parse_number(const char *s, size_t n, uint64_t *out)
{
	char digits[24];

	if (!n || n >= sizeof digits || s[0] < '0' || s[0] > '9' ||
		(s[0] == '0' && n > 1))
		return -1;
	memcpy(digits, s, n);
	digits[n] = 0;
	return dl_parse_u64(digits, 0, UINT64_MAX, out);
}

static int parse_shape(
	struct parser *p, struct column c, struct dl_layout_tensor *t)
{
	const char *s = c.s, *end = c.s + c.n;

	t->shape = p->shape;
	t->elements = 1;
	if (c.n == 1 && *s == '-')
		return 0;
	for (;;) {
		const char *x = memchr(s, 'x', (size_t)(end - s));
		uint64_t d;

		if (parse_number(s, (size_t)((x ? x : end) - s), &d))
			return dl_fail(p->e, DL_DATA, "bad shape");
		if (d && t->elements > MOST_ELEMENTS / d)
			return dl_fail(p->e, DL_DATA, "shape is too large");
		t->elements *= d;
		*p->shape++ = d;
		t->rank++;
		if (!x)
			return 0;
		s = x + 1;
	}
}

static int parse_name(
	struct parser *p, const char *s, size_t n, struct dl_string *out)
{
	struct dl_buf *strings = &p->l->strings;

	out->s = (const char *)strings->data + strings->len;
	if (dl_name_unescape(strings, s, n))
		return dl_fail(p->e, DL_DATA, "bad name");
	out->n = (size_t)((const char *)strings->data + strings->len - out->s);
	dl_buf_byte(strings, 0);
	return 0;
}

static int parse_rule(
	struct parser *p, struct column c, struct dl_layout_tensor *t)
{
	const char *equal = memchr(c.s, '=', c.n);
	size_t n = equal ? (size_t)(equal - c.s) : c.n;
	int rule = dl_rule_parse(c.s, n);

	if (rule < 0 || (rule == DL_ALIAS) != !!equal)
		return dl_fail(p->e, DL_DATA, "unknown rule");
	t->rule = (enum dl_rule)rule;
	return equal ? parse_name(p, equal + 1, c.n - n - 1, &t->alias) : 0;
}

/* The columns of a tensor line, in order. */
enum { NAME, DTYPE, SHAPE, ELEMENTS, FRAGMENT, RULE, WIDTH };

static int split_columns(
	const char *s, size_t n, struct column column[WIDTH], struct dl_err *e)
{
	const char *end = s + n;

	for (int i = 0; i < WIDTH; i++) {
		const char *tab = memchr(s, '\t', (size_t)(end - s));

		if (!tab != (i == WIDTH - 1))
			return dl_fail(e, DL_DATA, "not %d columns", WIDTH);
		column[i].s = s;
		column[i].n = (size_t)((tab ? tab : end) - s);
		s = tab ? tab + 1 : end;
	}
	return 0;
}

static int is(const char *s, size_t n, const char *word)
{
	return strlen(word) == n && !memcmp(s, word, n);
}

static int parse_tensor(struct parser *p, const char *s, size_t n)
{
	struct dl_layout_tensor *t = &p->l->tensor[p->l->tensors];
	struct column c[WIDTH];
	uint64_t elements, fragment;

	if (split_columns(s, n, c, p->e) ||
		parse_name(p, c[NAME].s, c[NAME].n, &t->name))
		return DL_DATA;
	/* What a record has under this name is never a tensor. */
	if (is(t->name.s, t->name.n, "__metadata__"))
		return dl_fail(p->e, DL_DATA, "a tensor named __metadata__");
	if (dl_dtype_parse(c[DTYPE].s, c[DTYPE].n, &t->dtype))
		return dl_fail(p->e, DL_DATA, "unknown dtype");
	if (!dl_dtype_is_float(t->dtype) && !dl_dtype_is_integer(t->dtype))
		return dl_fail(p->e, DL_DATA, "cannot merge dtype %s",
			dl_dtype_name(t->dtype));
	if (parse_shape(p, c[SHAPE], t))
		return DL_DATA;
	if (parse_number(c[ELEMENTS].s, c[ELEMENTS].n, &elements) ||
		elements != t->elements)
		return dl_fail(p->e, DL_DATA, "shape has %llu elements",
			(unsigned long long)t->elements);
	if (parse_number(c[FRAGMENT].s, c[FRAGMENT].n, &fragment) ||
		fragment > UINT32_MAX - 1)
		return dl_fail(p->e, DL_DATA, "bad fragment number");
	t->fragment = (uint32_t)fragment;
	if (parse_rule(p, c[RULE], t))
		return DL_DATA;
	p->lines[p->l->tensors++] = p->line;
	return 0;
}

/* A # line, with its newline: ours, or a note that is kept. */
static int parse_note(struct parser *p, const char *s, size_t n)
{
	static const char strategy[] = "# strategy\t", format[] = "# format\t";
	size_t skip = sizeof strategy - 1;

	if (is(s, n, COLUMNS))
		return 0;
	if (n >= sizeof format && !memcmp(s, format, sizeof format - 1)) {
		p->format = is(s, n, FORMAT);
		return p->format ? 0 : dl_fail(p->e, DL_DATA, "unknown format");
	}
	if (n > skip && !memcmp(s, strategy, skip)) {
		n -= skip + 1;
		if (!n || n >= sizeof p->l->strategy)
			return dl_fail(p->e, DL_DATA, "bad strategy");
		memcpy(p->l->strategy, s + skip, n);
		p->l->strategy[n] = 0;
		return 0;
	}
	dl_buf_add(&p->l->notes, s, n);
	return 0;
}

static int parse_lines(struct parser *p, const char *text, size_t n)
{
	const char *end = text + n;
	int rc = 0;

	while (!rc && text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t length;

		p->line++;
		if (!stop) {
			rc = dl_fail(p->e, DL_DATA, "has no end");
			break;
		}
		length = (size_t)(stop - text);
		rc = *text == '#' ? parse_note(p, text, length + 1)
				  : parse_tensor(p, text, length);
		text = stop + 1;
	}
	if (rc)
		return dl_at(p->e, "line %llu", (unsigned long long)p->line);
	if (!p->format)
		return dl_fail(p->e, DL_DATA, "no \"# format\" line");
	if (!p->l->tensors)
		return dl_fail(p->e, DL_DATA, "no tensor");
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct dl_layout_tensor *const *x = a, *const *y = b;

	return dl_string_compare(&(*x)->name, &(*y)->name);
}

static int by_fragment(const void *a, const void *b)
{
	const struct dl_layout_tensor *x = a, *y = b;

	if (x->fragment != y->fragment)
		return x->fragment < y->fragment ? -1 : 1;
	return dl_string_compare(&x->name, &y->name);
}

static void index_names(struct dl_layout *l)
{
	for (size_t i = 0; i < l->tensors; i++)
		l->by_name[i] = &l->tensor[i];
	qsort(l->by_name, l->tensors, sizeof *l->by_name, by_name);
}

const struct dl_layout_tensor *dl_layout_find(
	const struct dl_layout *l, const char *name, size_t n)
{
	struct dl_layout_tensor want = {.name = {name, n}}, *key = &want;
	struct dl_layout_tensor **found = bsearch(
		&key, l->by_name, l->tensors, sizeof *l->by_name, by_name);

	return found ? *found : NULL;
}

static uint64_t line_of(
	const struct parser *p, const struct dl_layout_tensor *t)
{
	return p->lines[t - p->l->tensor];
}

static int check_duplicates(const struct parser *p)
{
	for (size_t i = 1; i < p->l->tensors; i++) {
		struct dl_layout_tensor **t = &p->l->by_name[i];
		uint64_t a = line_of(p, t[-1]), b = line_of(p, t[0]);

		if (!by_name(t - 1, t))
			return dl_fail(p->e, DL_DATA,
				"line %llu: the tensor of line %llu again",
				(unsigned long long)(a > b ? a : b),
				(unsigned long long)(a > b ? b : a));
	}
	return 0;
}

static const char *alias_fault(
	const struct dl_layout *l, const struct dl_layout_tensor *t)
{
	const struct dl_layout_tensor *target =
		dl_layout_find(l, t->alias.s, t->alias.n);

	if (!target)
		return "tied to a tensor that is not in the layout";
	if (target->rule == DL_ALIAS)
		return "tied to a tensor that is tied itself";
	if (target->fragment != t->fragment)
		return "in another fragment than the tensor it is tied to";
	if (target->dtype != t->dtype || target->rank != t->rank ||
		memcmp(target->shape, t->shape, t->rank * sizeof *t->shape))
		return "of other shape or dtype than the tensor it is tied to";
	return NULL;
}

/* Fragments are 0 to P-1 and each has a tensor of its own. */
static int check_fragments(struct parser *p)
{
	struct dl_layout *l = p->l;
	uint64_t total = 0;

	l->fragment = dl_alloc_array(l->tensors, sizeof *l->fragment);
	for (size_t i = 0; i < l->tensors; i++) {
		struct dl_layout_tensor *t = &l->tensor[i];
		uint64_t line = line_of(p, t);

		if (t->fragment >= l->tensors)
			return dl_fail(p->e, DL_DATA,
				"line %llu: fragment %u, but there are only "
				"%zu tensors",
				(unsigned long long)line, t->fragment,
				l->tensors);
		l->fragment[t->fragment].tensors++;
		if (t->fragment >= l->fragments)
			l->fragments = t->fragment + 1;
		if (t->rule == DL_ALIAS) {
			const char *fault = alias_fault(l, t);

			if (fault)
				return dl_fail(p->e, DL_DATA, "line %llu: %s",
					(unsigned long long)line, fault);
			continue;
		}
		total += t->elements;
		if (total > MOST_ELEMENTS)
			return dl_fail(p->e, DL_DATA,
				"line %llu: the model is too large",
				(unsigned long long)line);
	}
	for (uint32_t f = 0; f < l->fragments; f++)
		if (!l->fragment[f].tensors)
			return dl_fail(p->e, DL_DATA,
				"fragment %u has no tensor, but fragment %u "
				"has",
				f, l->fragments - 1);
	return 0;
}

/* Sorts the tensors and places them in their fragments' packed arrays. */
static void place(struct dl_layout *l)
{
	qsort(l->tensor, l->tensors, sizeof *l->tensor, by_fragment);
	index_names(l);
	for (size_t i = 0; i < l->tensors; i++) {
		struct dl_layout_tensor *t = &l->tensor[i];
		struct dl_layout_fragment *f = &l->fragment[t->fragment];

		if (!i || t[-1].fragment != t->fragment)
			f->first = i;
		if (t->rule == DL_ALIAS)
			continue;
		t->offset = f->elements;
		f->elements += t->elements;
	}
	for (size_t i = 0; i < l->tensors; i++) {
		struct dl_layout_tensor *t = &l->tensor[i];

		if (t->rule == DL_ALIAS)
			t->offset = dl_layout_find(l, t->alias.s, t->alias.n)
					    ->offset;
	}
}

static void hash(struct dl_layout *l)
{
	struct dl_buf text = DL_BUF_INIT;
	struct dl_hash h;

	put_tensors(l, &text);
	dl_hash_init(&h);
	dl_hash_add(&h, text.data, text.len);
	dl_hash_hex(&h, l->hash);
	dl_buf_free(&text);
}

/* Room for all that n bytes of text can hold, so that nothing moves later: a
 * tensor line has at least 14 bytes, a name is followed by a tab or newline,
 * a number of a shape by x or tab. */
static void reserve(struct parser *p, const char *text, size_t n)
{
	size_t lines = 0, numbers = 0;

	for (size_t i = 0; i < n; i++) {
		lines += text[i] == '\n';
		numbers += text[i] == 'x';
	}
	if (lines > n / 14)
		lines = n / 14;
	dl_buf_reserve(&p->l->strings, n + 1);
	p->l->tensor = dl_alloc_array(lines + 1, sizeof *p->l->tensor);
	p->l->by_name = dl_alloc_array(lines + 1, sizeof *p->l->by_name);
	p->lines = dl_alloc_array(lines + 1, sizeof *p->lines);
	p->l->shapes = dl_alloc_array(numbers + lines + 1, sizeof *p->shape);
	p->shape = p->l->shapes;
}

int dl_layout_parse(
	struct dl_layout *l, const char *text, size_t n, struct dl_err *e)
{
	struct dl_err local;
	struct parser p = {.l = l, .e = e ? e : &local};
	int rc;

	memset(l, 0, sizeof *l);
	reserve(&p, text, n);
	rc = parse_lines(&p, text, n);
	if (!rc) {
		index_names(l);
		rc = check_duplicates(&p);
	}
	if (!rc)
		rc = check_fragments(&p);
	free(p.lines);
	if (rc) {
		dl_layout_release(l);
		return rc;
	}
	place(l);
	hash(l);
	return 0;
}

int dl_layout_read(struct dl_layout *l, const char *path, struct dl_err *e)
{
	struct dl_buf text = DL_BUF_INIT;
	int rc = dl_read_file(path, LAYOUT_LIMIT, &text, e);

	memset(l, 0, sizeof *l);
	if (!rc) {
		rc = dl_layout_parse(l, (const char *)text.data, text.len, e);
		if (rc)
			dl_at(e, "%s", path);
	}
	dl_buf_free(&text);
	return rc;
}
