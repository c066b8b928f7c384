/*
 * The inner loops, compiled once a CPU level from kernels.c. Sums run in 16
 * lanes that are added in a fixed order, everything else is element by
 * element, so every level gives the same bits.
 */
#ifndef DL_MERGE_KERNELS_H
#define DL_MERGE_KERNELS_H

#include <stddef.h>

struct dl_kernels {
	/* Sums over n elements, in double. */
	double (*square)(const float *x, size_t n);
	double (*square_wide)(const double *x, size_t n);
	double (*dot)(const float *x, const float *y, size_t n);
	/* sum = sum + c x, in double. Meanwhile the n elements at next, unless
	 * it is NULL, are fetched into the cache. */
	void (*accumulate)(double *sum, double c, const float *x,
		const float *next, size_t n);
	/* out = x, rounded. */
	void (*narrow)(float *out, const double *x, size_t n);
	/* sum = sum + c x, in f32. */
	void (*add)(float *sum, float c, const float *x, size_t n);
	/* Outer steps, see outer.h; b is the momentum. */
	void (*descend)(float *theta, const float *update, float lr, size_t n);
	void (*momentum)(float *theta, float *b, const float *update, float lr,
		float mu, size_t n);
	void (*nesterov)(float *theta, float *b, const float *update, float lr,
		float mu, size_t n);
};

/* The table for this CPU. */
const struct dl_kernels *dl_kernels(void);

extern const struct dl_kernels dl_kernels_baseline;
extern const struct dl_kernels dl_kernels_avx2;
extern const struct dl_kernels dl_kernels_avx512;

#endif
