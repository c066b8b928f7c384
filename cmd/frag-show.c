#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/name.h"
#include "tensor/records.h"

struct show {
	const char *path;
	struct dl_buf text;
};

static int flush(struct dl_buf *text, struct dl_err *e)
{
	int rc = dl_write_file("-", text->data, text->len, e);

	dl_buf_clear(text);
	return rc;
}

static void put_shape(struct dl_buf *out, const struct dl_tensor *t,
	const char *between)
{
	for (unsigned i = 0; i < t->rank; i++)
		dl_buf_printf(out, "%s%llu", i ? between : "",
			(unsigned long long)t->shape[i]);
}

static int show_lines(void *ctx, uint64_t record, const struct dl_header *h,
	struct dl_err *e)
{
	struct show *s = ctx;
	struct dl_buf *out = &s->text;

	dl_buf_printf(out, "# record\t%llu\t", (unsigned long long)record);
	dl_name_escape(out, s->path, strlen(s->path));
	for (size_t i = 0; i < h->metas; i++) {
		dl_buf_byte(out, '\t');
		dl_name_escape(out, h->meta[i][0].s, h->meta[i][0].n);
		dl_buf_byte(out, '=');
		dl_name_escape(out, h->meta[i][1].s, h->meta[i][1].n);
	}
	dl_buf_byte(out, '\n');
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[i];

		dl_name_escape(out, t->name.s, t->name.n);
		dl_buf_printf(out, "\t%s\t", dl_dtype_name(t->dtype));
		put_shape(out, t, "x");
		dl_buf_printf(out, "%s\t%llu\t%llu\t%llu\n",
			t->rank ? "" : "-", (unsigned long long)t->elements,
			(unsigned long long)t->size,
			(unsigned long long)record);
	}
	return flush(out, e);
}

/* A path is any bytes; JSON is UTF-8. */
static void put_path(struct dl_buf *out, const char *path)
{
	char text[4096];
	size_t n = strlen(path);

	if (!dl_utf8_valid(path, n)) {
		dl_scrub(text, sizeof text, path, n);
		path = text;
		n = strlen(text);
	}
	dl_json_quote(out, path, n);
}

static int show_json(void *ctx, uint64_t record, const struct dl_header *h,
	struct dl_err *e)
{
	struct show *s = ctx;
	struct dl_buf *out = &s->text;

	dl_buf_str(out, "{\"file\":");
	put_path(out, s->path);
	dl_buf_printf(out, ",\"record\":%llu,\"metadata\":{",
		(unsigned long long)record);
	for (size_t i = 0; i < h->metas; i++) {
		dl_buf_str(out, i ? "," : "");
		dl_json_quote(out, h->meta[i][0].s, h->meta[i][0].n);
		dl_buf_byte(out, ':');
		dl_json_quote(out, h->meta[i][1].s, h->meta[i][1].n);
	}
	dl_buf_str(out, "},\"tensors\":[");
	for (size_t i = 0; i < h->tensors; i++) {
		const struct dl_tensor *t = &h->tensor[i];

		dl_buf_str(out, i ? ",{\"name\":" : "{\"name\":");
		dl_json_quote(out, t->name.s, t->name.n);
		dl_buf_printf(out, ",\"dtype\":\"%s\",\"shape\":[",
			dl_dtype_name(t->dtype));
		put_shape(out, t, ",");
		dl_buf_printf(out, "],\"offset\":%llu,\"bytes\":%llu}",
			(unsigned long long)t->offset,
			(unsigned long long)t->size);
	}
	dl_buf_str(out, "]}\n");
	return flush(out, e);
}

typedef int show_fn(void *ctx, uint64_t record, const struct dl_header *h,
	struct dl_err *e);

static int show_set(struct show *s, show_fn *f, struct dl_err *e)
{
	struct dl_model m = DL_MODEL_INIT;
	int rc = dl_model_add(&m, s->path, e);

	for (size_t i = 0; i < m.files && !rc; i++) {
		s->path = m.file[i].path;
		rc = f(s, 0, &m.file[i].record->header, e);
	}
	dl_model_close(&m);
	return rc;
}

int frag_show(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, CMD_LONG, {0}};
	static char dash[] = "-", *standard_input[] = {dash};
	struct show s = {NULL, DL_BUF_INIT};
	struct dl_err e;
	show_fn *f = show_lines;
	int opt, rc = 0;

	while ((opt = getopt_long(argc, argv, "j" CMD_SHORT, options, NULL))
		!= -1)
		if (opt == 'j')
			f = show_json;
		else
			cmd_common_option(opt);
	argv = optind < argc ? argv + optind : standard_input;
	argc = optind < argc ? argc - optind : 1;
	if (f == show_lines)
		dl_buf_str(&s.text,
			"# name\tdtype\tshape\telements\tbytes\trecord\n");
	for (int i = 0; i < argc && !rc; i++) {
		s.path = argv[i];
		rc = dl_model_is_set(argv[i]) ? show_set(&s, f, &e)
			: dl_records_walk(argv[i], f, &s, &e);
	}
	dl_buf_free(&s.text);
	return rc ? cmd_fail(&e) : 0;
}
