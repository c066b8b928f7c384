/*
 * Pieces of the page: text that is escaped, and figures as people read them.
 */
#ifndef CMD_STAT_MARKUP_H
#define CMD_STAT_MARKUP_H

#include <stdint.h>

#include "base/mem.h"

/* What an axis or a tile counts. */
enum unit { UNIT_NUMBER, UNIT_TIME, UNIT_SHARE, UNIT_BYTES, UNIT_LOSS };

/* Text in an element or in a quoted attribute. */
void markup_text(struct dl_buf *out, const char *s);
/* A figure with three digits or so: "1.5M", "1h30m" of seconds, "85%", "2 GB",
 * "-" for NaN. */
void markup_figure(struct dl_buf *out, double v, enum unit unit);

#endif
