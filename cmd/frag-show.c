#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/frag.h"
#include "tensor/name.h"
#include "tensor/records.h"

enum { BLOCK = 1 << 16 };

struct show {
	const char *path;
	struct dl_buf text;
	/* With -H: the file, and where in it the record's data begin. */
	int hash;
	const struct dl_records *file;
	uint64_t at;
};

static int flush(struct dl_buf *text, struct dl_err *e)
{
	int rc = dl_write_file("-", text->data, text->len, e);

	dl_buf_clear(text);
	return rc;
}

static void put_shape(
	struct dl_buf *out, const struct dl_tensor *t, const char *between)
{
	for (unsigned i = 0; i < t->rank; i++)
		dl_buf_printf(out, "%s%llu", i ? between : "",
			(unsigned long long)t->shape[i]);
}

/* The hash of t's bytes into hex; nothing without -H. */
static int hash_tensor(const struct show *s, const struct dl_tensor *t,
	char hex[DL_HASH_HEX], struct dl_err *e)
{
	unsigned char block[BLOCK];
	struct dl_hash h;
	int rc = 0;

	dl_hash_init(&h);
	for (uint64_t at = 0; s->hash && !rc && at < t->size; at += BLOCK) {
		size_t n =
			t->size - at < BLOCK ? (size_t)(t->size - at) : BLOCK;

		rc = dl_records_read(
			s->file, s->at + t->offset + at, block, n, e);
		if (!rc)
			dl_hash_add(&h, block, n);
	}
	dl_hash_hex(&h, hex);
	return rc;
}

static int show_lines(
	void *ctx, uint64_t record, const struct dl_header *h, struct dl_err *e)
{
	struct show *s = ctx;
	struct dl_buf *out = &s->text;
	char hex[DL_HASH_HEX];

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

		if (hash_tensor(s, t, hex, e))
			return e->code;
		dl_name_escape(out, t->name.s, t->name.n);
		dl_buf_printf(out, "\t%s\t", dl_dtype_name(t->dtype));
		put_shape(out, t, "x");
		dl_buf_printf(out, "%s\t%llu\t%llu\t%llu%s%s\n",
			t->rank ? "" : "-", (unsigned long long)t->elements,
			(unsigned long long)t->size, (unsigned long long)record,
			s->hash ? "\t" : "", s->hash ? hex : "");
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

static int show_json(
	void *ctx, uint64_t record, const struct dl_header *h, struct dl_err *e)
{
	struct show *s = ctx;
	struct dl_buf *out = &s->text;
	char hex[DL_HASH_HEX];

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

		if (hash_tensor(s, t, hex, e))
			return e->code;
		dl_buf_str(out, i ? ",{\"name\":" : "{\"name\":");
		dl_json_quote(out, t->name.s, t->name.n);
		dl_buf_printf(out, ",\"dtype\":\"%s\",\"shape\":[",
			dl_dtype_name(t->dtype));
		put_shape(out, t, ",");
		dl_buf_printf(out, "],\"offset\":%llu,\"bytes\":%llu",
			(unsigned long long)t->offset,
			(unsigned long long)t->size);
		if (s->hash)
			dl_buf_printf(out, ",\"hash\":\"%s\"", hex);
		dl_buf_byte(out, '}');
	}
	dl_buf_str(out, "]}\n");
	return flush(out, e);
}

typedef int show_fn(void *ctx, uint64_t record, const struct dl_header *h,
	struct dl_err *e);

static int show_records(struct show *s, show_fn *f,
	const struct dl_records *file, struct dl_err *e)
{
	int rc = 0;

	s->file = file;
	for (size_t i = 0; i < file->records && !rc; i++) {
		s->at = file->record[i].at;
		rc = f(s, i, &file->record[i].header, e);
	}
	return rc;
}

/* Files that are opened at once, since they belong together or since their
 * data are read too. */
static int show_files(struct show *s, show_fn *f, struct dl_err *e)
{
	struct dl_model m = DL_MODEL_INIT;
	int set = dl_model_is_set(s->path), rc = dl_model_add(&m, s->path, e);

	for (size_t i = 0; i < m.files && !rc; i++) {
		if (set)
			s->path = m.file[i].path;
		rc = show_records(s, f, &m.file[i], e);
	}
	dl_model_close(&m);
	return rc;
}

int frag_show(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"hash", no_argument, NULL, 'H'}, CMD_LONG, {0}};
	static char dash[] = "-", *standard_input[] = {dash};
	struct show s = {.text = DL_BUF_INIT};
	struct dl_err e;
	show_fn *f = show_lines;
	int opt, rc = 0;

	while ((opt = getopt_long(argc, argv, "jH" CMD_SHORT, options, NULL)) !=
		-1)
		if (opt == 'j')
			f = show_json;
		else if (opt == 'H')
			s.hash = 1;
		else
			cmd_common_option(opt);
	argv = optind < argc ? argv + optind : standard_input;
	argc = optind < argc ? argc - optind : 1;
	if (f == show_lines)
		dl_buf_printf(&s.text,
			"# name\tdtype\tshape\telements\tbytes\trecord%s\n",
			s.hash ? "\thash" : "");
	for (int i = 0; i < argc && !rc; i++) {
		s.path = argv[i];
		rc = s.hash || dl_model_is_set(argv[i])
			     ? show_files(&s, f, &e)
			     : dl_records_walk(argv[i], f, &s, &e);
	}
	dl_buf_free(&s.text);
	return rc ? cmd_fail(&e) : 0;
}
