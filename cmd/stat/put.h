/*
 * Figures as text, for programs (exact) or for eyes.
 */
#ifndef CMD_STAT_PUT_H
#define CMD_STAT_PUT_H

#include <stdint.h>

#include "base/mem.h"

void put_count(struct dl_buf *out, uint64_t n);
/* "-" for NaN; digits are those after the point, for eyes. */
void put_real(struct dl_buf *out, double v, int digits, int exact);
/* 0 to 1, or percent; "-" for NaN. */
void put_share(struct dl_buf *out, double share, int exact);
void put_bytes(struct dl_buf *out, uint64_t bytes, int exact);
/* Seconds, or what people say. */
void put_duration(struct dl_buf *out, double ns, int exact);
/* UTC, or how long before last; "-" for 0. */
void put_time(struct dl_buf *out, int64_t wall, int64_t last, int exact);

#endif
