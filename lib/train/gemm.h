/*
 * The three matrix products of a training step, on row-major matrices with
 * row strides; each adds to c when more is 1 and overwrites it when more is 0.
 */
#ifndef DL_TRAIN_GEMM_H
#define DL_TRAIN_GEMM_H

#include <cblas.h>
#include <stddef.h>

/* The functions of these names, once dl_blas_load (blas.h) was called. */
extern struct dl_blas {
	__typeof__(cblas_sgemm) *sgemm;
	__typeof__(openblas_set_num_threads) *set_num_threads;
} dl_blas;

/* c [m, n] = a [m, k] times b [n, k] transposed: a layer forwards. */
static inline void dl_gemm_nt(size_t m, size_t n, size_t k, const float *a,
	size_t lda, const float *b, size_t ldb, float more, float *c,
	size_t ldc)
{
	dl_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)m, (int)n,
		(int)k, 1, a, (int)lda, b, (int)ldb, more, c, (int)ldc);
}

/* c [m, n] = a [m, k] times b [k, n]: the gradient of a layer's input. */
static inline void dl_gemm_nn(size_t m, size_t n, size_t k, const float *a,
	size_t lda, const float *b, size_t ldb, float more, float *c,
	size_t ldc)
{
	dl_blas.sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n,
		(int)k, 1, a, (int)lda, b, (int)ldb, more, c, (int)ldc);
}

/* c [m, n] = a [k, m] transposed times b [k, n]: of a layer's weights. */
static inline void dl_gemm_tn(size_t m, size_t n, size_t k, const float *a,
	size_t lda, const float *b, size_t ldb, float more, float *c,
	size_t ldc)
{
	dl_blas.sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)m, (int)n,
		(int)k, 1, a, (int)lda, b, (int)ldb, more, c, (int)ldc);
}

#endif
