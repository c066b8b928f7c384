/*
 * The loops of a training step that are not matrix products. Compiled once a
 * CPU level from one source and chosen through a table. Unlike the kernels of
 * lib/merge these may differ between levels in the last bits; on one machine
 * they always give the same.
 *
 * Matrices are rows of n numbers, one after another unless a stride is named.
 */
#ifndef DL_TRAIN_KERNELS_H
#define DL_TRAIN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* What one AdamW update needs besides the arrays. */
struct dl_adamw_step {
	float scale; /* of the gradient: clipping */
	float beta1, beta2;
	float rate; /* learning rate over the first moment's bias */
	float root; /* 1 / sqrt of the second moment's bias */
	float eps;
	float keep; /* 1 - learning rate * weight decay */
};

struct dl_train_kernels {
	/* out = w x / rms(x), and each row's 1 / rms in scale. */
	void (*norm)(const float *x, const float *w, size_t rows, size_t n,
		float eps, float *out, float *scale);
	/* out again from what norm left in scale. */
	void (*norm_again)(const float *x, const float *w, const float *scale,
		size_t rows, size_t n, float *out);
	/* Adds the gradients of norm to dx and dw. */
	void (*norm_back)(const float *x, const float *w, const float *scale,
		const float *dy, size_t rows, size_t n, float *dx, float *dw);
	/*
	 * Turns the pairs (i, i + half) of each of the heads in a row by the
	 * angle of the row's position; rows are stride apart, positions run 0
	 * to length - 1 again and again. cosine and sine have half numbers a
	 * position; sign -1 turns back.
	 */
	void (*rope)(float *x, size_t rows, size_t stride, size_t heads,
		size_t half, size_t length, const float *cosine,
		const float *sine, float sign);
	/*
	 * Causal softmax in place of rows scores of n, the first row seeing
	 * the first `seen` of them and each later row one more; 0 beyond.
	 * lse gets each row's log of the sum of exponentials.
	 */
	void (*softmax)(float *s, size_t rows, size_t n, size_t seen,
		float scale, float *lse);
	/* The same probabilities again from scores and lse. */
	void (*softmax_again)(float *s, size_t rows, size_t n, size_t seen,
		float scale, const float *lse);
	/*
	 * dp = p (dp - sum(dout out)) scale: the gradient of the scores. out
	 * and dout are rows of width, stride apart.
	 */
	void (*softmax_back)(const float *p, float *dp, size_t rows, size_t n,
		size_t seen, float scale, const float *out, const float *dout,
		size_t width, size_t stride);
	/* h = silu(gate) up; rows of gu hold n gates, then n ups. */
	void (*swiglu)(const float *gu, size_t rows, size_t n, float *h);
	/* From dh in h: dgu, and h itself again in its place. */
	void (*swiglu_back)(
		const float *gu, size_t rows, size_t n, float *h, float *dgu);
	/*
	 * The summed cross entropy of rows of n logits against one target a
	 * row; the logits become their gradient times scale.
	 */
	double (*cross_entropy)(float *logits, const uint16_t *targets,
		size_t rows, size_t n, float scale);
	void (*add)(float *x, const float *y, size_t n); /* x += y */
	double (*sum_squares)(const float *x, size_t n);
	void (*adamw)(float *x, const float *g, float *m, float *v, size_t n,
		const struct dl_adamw_step *s);
};

/* The table for this CPU (dl_cpu_level). */
const struct dl_train_kernels *dl_train_kernels(void);

/* The tables by level; the last two alias the first off x86-64. */
extern const struct dl_train_kernels dl_train_kernels_baseline,
	dl_train_kernels_avx2, dl_train_kernels_avx512;

#endif
