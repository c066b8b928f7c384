/*
 * Malformed records are refused with 65 and the fact, and cost no more memory
 * than they weigh. With --write FOLDER each becomes a file there beside the
 * fact, for tests of programs.
 */
#include "tensor/record.h"

#include <malloc.h>
#include <string.h>

#include "malformed.h"

#include "../tap.h"

/* What lib allocates, counted by the linker's --wrap. */
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static size_t live, peak;

static void *count(void *p)
{
	live += malloc_usable_size(p);
	if (live > peak)
		peak = live;
	return p;
}

void *__wrap_malloc(size_t n)
{
	return count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return count(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	live -= malloc_usable_size(p);
	return count(__real_realloc(p, n));
}

void __wrap_free(void *p)
{
	live -= malloc_usable_size(p);
	__real_free(p);
}

/* Of allocations rounded up, and of what is small. */
enum { SLACK = 64 << 10, READER_SLACK = SLACK + (1 << 20) };

static int names(const char *text, const char *fact)
{
	return strstr(text, fact) != NULL;
}

static void check_alone(
	const char *name, const struct dl_buf *bytes, const char *fact)
{
	struct dl_limits limits = DL_LIMITS_FILE;
	struct dl_record r;
	struct dl_err e = {.text = ""};
	size_t before = peak = live;
	int code = dl_record_parse(&r, bytes->data, bytes->len, limits, &e);

	ok(code == DL_DATA && names(e.text, fact), "%s: %s", name, e.text);
	ok(live == before && peak - before <= bytes->len + SLACK,
		"%s: %zu bytes cost %zu", name, bytes->len, peak - before);
}

/* As a stream in pieces; the reader holds the header beside the checks. */
static void check_stream(
	const char *name, const struct dl_buf *bytes, const char *fact)
{
	struct dl_limits limits = DL_LIMITS_FILE;
	struct dl_reader r;
	struct dl_err e = {.text = ""};
	enum dl_reader_event ev = DL_READER_MORE;
	size_t at = 0, n, taken, before = peak = live;
	int refused;

	dl_reader_init(&r, limits);
	while (ev != DL_READER_BAD &&
		(at < bytes->len || ev != DL_READER_MORE)) {
		n = bytes->len - at < 4099 ? bytes->len - at : 4099;
		ev = dl_reader_feed(&r, bytes->data + at, n, &taken, &e);
		at += taken;
	}
	refused = ev == DL_READER_BAD ? e.code : dl_reader_end(&r, &e);
	dl_reader_release(&r);
	ok(refused == DL_DATA && names(e.text, fact) &&
			names(e.text, "record "),
		"%s as a stream: %s", name, e.text);
	ok(live == before && peak - before <= 2 * bytes->len + READER_SLACK,
		"%s as a stream: %zu bytes cost %zu", name, bytes->len,
		peak - before);
}

static void check(void *ctx, const char *name, const struct dl_buf *bytes,
	const char *alone, const char *stream)
{
	(void)ctx;
	check_alone(name, bytes, alone);
	check_stream(name, bytes, stream);
}

static void write_one(const char *folder, const char *name, const char *suffix,
	const void *p, size_t n)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
	f = fopen(path, "wb");
	if (!f || fwrite(p, 1, n, f) != n || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void write_both(void *folder, const char *name,
	const struct dl_buf *bytes, const char *alone, const char *stream)
{
	(void)alone;
	write_one(folder, name, ".bad", bytes->data, bytes->len);
	write_one(folder, name, ".fact", stream, strlen(stream));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--write")) {
		malformed_each(write_both, argv[2]);
		return 0;
	}
	malformed_each(check, NULL);
	return done_testing();
}
