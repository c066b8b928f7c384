/*
 * Memory and byte buffers.
 *
 * Small memory never fails: when the system has none left the program says so
 * and leaves with 71 (the one place where lib exits, since nothing above could
 * do better). Sizes that come from outside are checked against a limit before
 * they reach these functions.
 */
#ifndef DL_BASE_MEM_H
#define DL_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

void *dl_alloc(size_t n);              /* zeroed */
void *dl_alloc_array(size_t n, size_t size); /* zeroed; overflow checked */
void *dl_resize(void *p, size_t n, size_t size); /* n items; overflow checked */
char *dl_strdup(const char *s);
char *dl_strndup(const char *s, size_t n);
char *dl_sprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * A large zeroed buffer aligned to 64 bytes, from 8 MiB on whole huge pages
 * where the system has them; made once and reused, since a page fault costs
 * more than the work on a page.
 * Free with dl_big_free and the same size.
 */
void *dl_big_alloc(size_t n);
void dl_big_free(void *p, size_t n);

/* A growing byte buffer. DL_BUF_INIT and all zeroes are both empty. */
struct dl_buf {
	unsigned char *data;
	size_t len, cap;
};
#define DL_BUF_INIT {0}

void dl_buf_reserve(struct dl_buf *b, size_t more); /* room past len */
/* The same without room to spare: for sizes that come from outside, where the
 * memory must follow the input. */
void dl_buf_reserve_exact(struct dl_buf *b, size_t more);
void dl_buf_add(struct dl_buf *b, const void *data, size_t n);
void dl_buf_str(struct dl_buf *b, const char *s);
void dl_buf_byte(struct dl_buf *b, int c);
void dl_buf_printf(struct dl_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void dl_buf_drop(struct dl_buf *b, size_t n); /* removes the first n bytes */
char *dl_buf_cstr(struct dl_buf *b); /* adds a NUL past len; borrowed */
void dl_buf_clear(struct dl_buf *b);   /* len = 0, keeps the memory */
void dl_buf_free(struct dl_buf *b);

/* Little-endian loads and stores at any address. */
static inline uint16_t dl_le16(const void *p)
{
	const unsigned char *b = p;
	return (uint16_t)(b[0] | b[1] << 8);
}
static inline uint32_t dl_le32(const void *p)
{
	const unsigned char *b = p;
	return (uint32_t)dl_le16(b) | (uint32_t)dl_le16(b + 2) << 16;
}
static inline uint64_t dl_le64(const void *p)
{
	const unsigned char *b = p;
	return (uint64_t)dl_le32(b) | (uint64_t)dl_le32(b + 4) << 32;
}
static inline void dl_put_le16(void *p, uint16_t v)
{
	unsigned char *b = p;
	b[0] = (unsigned char)v;
	b[1] = (unsigned char)(v >> 8);
}
static inline void dl_put_le32(void *p, uint32_t v)
{
	dl_put_le16(p, (uint16_t)v);
	dl_put_le16((unsigned char *)p + 2, (uint16_t)(v >> 16));
}
static inline void dl_put_le64(void *p, uint64_t v)
{
	dl_put_le32(p, (uint32_t)v);
	dl_put_le32((unsigned char *)p + 4, (uint32_t)(v >> 32));
}

#endif
