/*
 * Any text as a layout: refused with 65 and a text, or one whose fragments hold
 * each tensor once, which is written again in one spelling, under one hash, and
 * whose records are found to be its own.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tensor/layout.h"

static void check_fragment(
	const struct dl_layout *l, uint32_t p, uint64_t *covered)
{
	const struct dl_layout_fragment *f = &l->fragment[p];
	uint64_t elements = 0;

	if (f->first + f->tensors > l->tensors || !f->tensors)
		abort();
	for (size_t i = f->first; i < f->first + f->tensors; i++) {
		const struct dl_layout_tensor *t = &l->tensor[i];

		if (t->fragment != p ||
			dl_layout_find(l, t->name.s, t->name.n) != t ||
			t->offset + t->elements > f->elements)
			abort();
		if (t->rule == DL_ALIAS)
			continue;
		if (t->offset != elements)
			abort();
		elements += t->elements;
	}
	if (elements != f->elements)
		abort();
	*covered += f->tensors;
}

/* Its record, as its header alone, is that fragment's and no other's. */
static void check_record(const struct dl_layout *l, uint32_t p)
{
	struct dl_writer w = DL_WRITER_INIT;
	struct dl_buf text = DL_BUF_INIT;
	struct dl_header h;

	dl_layout_record(l, p, &w);
	dl_writer_finish(&w, &text, NULL);
	if (dl_header_parse(&h, text.data + 8, text.len - 8, NULL) ||
		dl_layout_check_record(l, p, &h, NULL))
		abort();
	if (h.tensors && l->fragments > 1 &&
		!dl_layout_check_record(l, (p + 1) % l->fragments, &h, NULL))
		abort();
	dl_header_release(&h);
	dl_writer_release(&w);
	dl_buf_free(&text);
}

static void check_spelling(const struct dl_layout *l)
{
	struct dl_buf once = DL_BUF_INIT, twice = DL_BUF_INIT;
	struct dl_layout again;

	dl_layout_write(l, &once);
	if (dl_layout_parse(&again, (char *)once.data, once.len, NULL) ||
		strcmp(again.hash, l->hash) != 0)
		abort();
	dl_layout_write(&again, &twice);
	if (once.len != twice.len ||
		memcmp(once.data, twice.data, once.len) != 0)
		abort();
	dl_layout_release(&again);
	dl_buf_free(&once);
	dl_buf_free(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct dl_err e = {0};
	struct dl_layout l;
	uint64_t covered = 0;
	int code = dl_layout_parse(&l, (const char *)data, n, &e);

	if (code) {
		if (code != DL_DATA || e.code != DL_DATA || !e.text[0])
			abort();
		return 0;
	}
	for (uint32_t p = 0; p < l.fragments; p++) {
		check_fragment(&l, p, &covered);
		check_record(&l, p);
	}
	if (covered != l.tensors)
		abort();
	check_spelling(&l);
	dl_layout_release(&l);
	return 0;
}
