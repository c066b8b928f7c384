/*
 * Figures in Prometheus' text exposition format, version 0.0.4.
 */
#ifndef CMD_STAT_PROMETHEUS_H
#define CMD_STAT_PROMETHEUS_H

#include "state/stat.h"

void prometheus_put(struct dl_buf *out, const struct dl_stat *s);

#endif
