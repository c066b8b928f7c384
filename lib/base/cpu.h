/*
 * The CPU level that picks a kernel table, so that one build serves old and
 * new machines. Every level gives the same bits.
 */
#ifndef DL_BASE_CPU_H
#define DL_BASE_CPU_H

enum dl_cpu { DL_CPU_BASELINE, DL_CPU_AVX2, DL_CPU_AVX512, DL_CPU_LEVELS };

/*
 * What this CPU has, capped by the environment's DL_CPU (baseline, avx2,
 * avx512); read once. An unknown DL_CPU counts as baseline.
 */
enum dl_cpu dl_cpu_level(void);

const char *dl_cpu_name(enum dl_cpu level);

#endif
