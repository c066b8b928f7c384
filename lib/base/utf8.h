/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF.
 */
#ifndef DL_BASE_UTF8_H
#define DL_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the character that begins s[0..n), n > 0; 0 when it is not one. */
size_t dl_utf8_length(const char *s, size_t n);

int dl_utf8_valid(const char *s, size_t n);

#endif
