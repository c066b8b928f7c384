/*
 * The inner loops, compiled once a CPU level from kernels.c. Sums run in 16
 * lanes that are added in a fixed order, everything else is element by
 * element, so every level gives the same bits.
 */
#ifndef DL_MERGE_KERNELS_H
#define DL_MERGE_KERNELS_H

#include "merge/gram.h"

enum { DL_LANES = 16, DL_GRAM_TILE = 4 };

struct dl_kernels {
	/* Sums over n elements, in double. */
	double (*square)(const float *x, size_t n);
	double (*square_wide)(const double *x, size_t n);
	double (*dot)(const float *x, const float *y, size_t n);
	/* The products of all x's: that of i and j >= i is added to the lanes
	 * lane[i][j], whose sum it is in the end; a call for each strip of
	 * elements, n a multiple of DL_LANES but for the last. m is a multiple
	 * of DL_GRAM_TILE. */
	void (*gram)(double (*lane)[DL_GRAM_MOST][DL_LANES],
		const float *const *x, size_t m, size_t n);
	/* Is none of them NaN or infinite? n is a multiple of DL_LANES. */
	int (*finite)(const float *x, size_t n);
	/* out = x, rounded. */
	void (*narrow)(float *out, const double *x, size_t n);
	/* sum = sum + c x, in f32. */
	void (*add)(float *sum, float c, const float *x, size_t n);
	/* Outer steps from theta to next, which may be theta, see outer.h; b is
	 * the momentum. */
	void (*descend)(float *next, const float *theta, const float *update,
		float lr, size_t n);
	void (*momentum)(float *next, const float *theta, float *b,
		const float *update, float lr, float mu, size_t n);
	void (*nesterov)(float *next, const float *theta, float *b,
		const float *update, float lr, float mu, size_t n);
};

/* The lanes' sum; they are used up. */
double dl_lanes_total(double lane[DL_LANES]);

/* The table for this CPU. */
const struct dl_kernels *dl_kernels(void);

extern const struct dl_kernels dl_kernels_baseline;
extern const struct dl_kernels dl_kernels_avx2;
extern const struct dl_kernels dl_kernels_avx512;

#endif
