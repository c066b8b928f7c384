/*
 * Tensor names in lines of text: a tab-separated column that holds any name.
 * Backslash, tab and newline are written \\, \t and \n; other controls, DEL,
 * and a # at the beginning, are written \xNN; all else stands for itself.
 */
#ifndef DL_TENSOR_NAME_H
#define DL_TENSOR_NAME_H

#include "base/mem.h"
#include "tensor/record.h"

void dl_name_escape(struct dl_buf *out, const char *s, size_t n);

/*
 * Appends the n bytes at s, unescaped, to out. -1 when an escape is unknown or
 * the name is not UTF-8. At most n bytes are added.
 */
int dl_name_unescape(struct dl_buf *out, const char *s, size_t n);

#endif
