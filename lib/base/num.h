/*
 * Numbers, sizes, durations and times from the command line, through one
 * checked parser each; the whole string must be used.
 */
#ifndef DL_BASE_NUM_H
#define DL_BASE_NUM_H

#include <stdint.h>

/* 0, or -1 when s is not a number in [min, max]. */
int dl_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out);
int dl_parse_double(const char *s, double min, double max, double *out);

/* Bytes: "4096", "64K", "5G" (powers of 1000), "64Ki", "5Gi" (of 1024). */
int dl_parse_size(const char *s, uint64_t *out);

/* Bytes a second, at least 1: a size, "100M", or bits, "100Mbit". */
int dl_parse_rate(const char *s, uint64_t *out);

/* Nanoseconds: "250ms", "2s", "1.5m", "3h", "1d", or the sum of such with the
 * longest unit first, "1h30m"; a bare number is seconds.
 * Below 2^62 (146 years), so that a deadline is now plus one. */
int dl_parse_duration(const char *s, int64_t *out);

/* Monotonic and wall-clock nanoseconds. Never called by the pure cores. */
int64_t dl_now(void);
int64_t dl_wall(void);

#define DL_SECOND INT64_C(1000000000)

enum { DL_HUMAN = 24 };

/* "1.5 GB", "850 kB" into out; returns out. */
char *dl_human_size(char out[DL_HUMAN], uint64_t bytes);
/* "2m05s", "850ms" into out; returns out. */
char *dl_human_duration(char out[DL_HUMAN], int64_t ns);

#endif
