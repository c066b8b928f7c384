#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"

#define HUGE_PAGE ((size_t)2 << 20)
#define ADVISED (4 * HUGE_PAGE)

static void out_of_memory(size_t n)
{
	fprintf(stderr, "dl-tools: out of memory (%zu bytes wanted)\n", n);
	exit(DL_OSERR);
}

/* Page faults cost more than the work on a page, so large memory asks for huge
 * pages. Below a few of them the rounding would cost more memory. */
static void advise(void *p, size_t n)
{
#ifdef MADV_HUGEPAGE
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)p + page - 1) / page * page;

	if (n >= ADVISED)
		madvise((void *)from, (uintptr_t)p + n - from, MADV_HUGEPAGE);
#else
	(void)p;
	(void)n;
#endif
}

void *dl_alloc_array(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size ? size : 1);

	if (!p)
		out_of_memory(n);
	advise(p, n * size);
	return p;
}

void *dl_alloc(size_t n)
{
	return dl_alloc_array(n, 1);
}

void *dl_resize(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		out_of_memory(SIZE_MAX);
	n *= size;
	p = realloc(p, n ? n : 1);
	if (!p)
		out_of_memory(n);
	advise(p, n);
	return p;
}

char *dl_strndup(const char *s, size_t n)
{
	char *p = dl_alloc(n + 1);

	memcpy(p, s, n);
	return p;
}

char *dl_strdup(const char *s)
{
	return dl_strndup(s, strlen(s));
}

char *dl_sprintf(const char *fmt, ...)
{
	va_list ap;
	int n;
	char *s;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	s = dl_alloc((size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

/* What is advised to be huge pages is whole ones. */
static size_t big_bytes(size_t n)
{
	if (n >= ADVISED)
		return (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	return n ? n : 1;
}

void *dl_big_alloc(size_t n)
{
	size_t bytes, more = n < ADVISED ? 0 : HUGE_PAGE, before;
	unsigned char *p;

	if (n > SIZE_MAX - 2 * HUGE_PAGE)
		out_of_memory(n);
	bytes = big_bytes(n);
	p = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		out_of_memory(n);
	if (!more)
		return p;
	before = (HUGE_PAGE - (uintptr_t)p % HUGE_PAGE) % HUGE_PAGE;
	if (before)
		munmap(p, before);
	munmap(p + before + bytes, more - before);
	advise(p + before, bytes);
	return p + before;
}

void dl_big_free(void *p, size_t n)
{
	if (p)
		munmap(p, big_bytes(n));
}

void dl_buf_reserve(struct dl_buf *b, size_t more)
{
	size_t cap = b->cap ? b->cap : 64;

	if (more > SIZE_MAX / 2 - b->len)
		out_of_memory(more);
	while (cap < b->len + more)
		cap *= 2;
	if (cap != b->cap) {
		b->data = dl_resize(b->data, cap, 1);
		b->cap = cap;
	}
}

void dl_buf_reserve_exact(struct dl_buf *b, size_t more)
{
	if (more > SIZE_MAX / 2 - b->len)
		out_of_memory(more);
	if (b->cap < b->len + more) {
		b->cap = b->len + more;
		b->data = dl_resize(b->data, b->cap, 1);
	}
}

void dl_buf_add(struct dl_buf *b, const void *data, size_t n)
{
	dl_buf_reserve(b, n);
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
}

void dl_buf_str(struct dl_buf *b, const char *s)
{
	dl_buf_add(b, s, strlen(s));
}

void dl_buf_byte(struct dl_buf *b, int c)
{
	unsigned char byte = (unsigned char)c;

	dl_buf_add(b, &byte, 1);
}

void dl_buf_printf(struct dl_buf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	dl_buf_reserve(b, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void dl_buf_drop(struct dl_buf *b, size_t n)
{
	if (n && n < b->len)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

char *dl_buf_cstr(struct dl_buf *b)
{
	dl_buf_reserve(b, 1);
	b->data[b->len] = 0;
	return (char *)b->data;
}

void dl_buf_clear(struct dl_buf *b)
{
	b->len = 0;
}

void dl_buf_free(struct dl_buf *b)
{
	free(b->data);
	*b = (struct dl_buf)DL_BUF_INIT;
}
