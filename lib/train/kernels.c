/* Compiled once a level, with DL_TABLE the name of the table. */
#include "train/kernels.h"

#include <math.h>
#include <string.h>

/*
 * e^x as code that vectorises: 2^n from its bits times a polynomial. Without
 * branches: n is clamped as an integer, so that far below it is 0, far above
 * infinite, and NaN stays NaN.
 */
static inline float expo(float x)
{
	int n = (int)(x * 1.44269504f + 127.5f);
	float r = x - ((float)n - 127.0f) * 0.693147181f;
	float p = 1.9875691500e-4f;
	float power;

	n = n < 255 ? n : 255;
	n = n > 0 ? n : 0;
	n <<= 23;
	memcpy(&power, &n, sizeof(power));
	p = p * r + 1.3981999507e-3f;
	p = p * r + 8.3334519073e-3f;
	p = p * r + 4.1665795894e-2f;
	p = p * r + 1.6666665459e-1f;
	p = p * r + 5.0000001201e-1f;
	p = p * r * r + r + 1.0f;
	return p * power;
}

/* The bits of x as an integer of the same order; its own inverse. */
static inline int32_t ordered(int32_t bits)
{
	return bits ^ (bits >> 31 & 0x7fffffff);
}

/* The largest of x, or NaN when there is one: compilers make vectors of a
 * maximum of integers, but not of floats, which need not be ordered. */
static inline float largest(const float *x, size_t n)
{
	int32_t top = INT32_MIN, bits;
	float value;

#pragma omp simd reduction(max : top)
	for (size_t j = 0; j < n; j++) {
		int32_t v;

		memcpy(&v, &x[j], sizeof(v));
		v = ordered(v);
		top = v > top ? v : top;
	}
	bits = ordered(top);
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void norm_again(const float *x, const float *w, const float *scale,
	size_t rows, size_t n, float *restrict out)
{
	for (size_t i = 0; i < rows; i++, x += n, out += n)
#pragma omp simd
		for (size_t j = 0; j < n; j++)
			out[j] = w[j] * (x[j] * scale[i]);
}

static void norm(const float *x, const float *w, size_t rows, size_t n,
	float eps, float *restrict out, float *restrict scale)
{
	for (size_t i = 0; i < rows; i++) {
		const float *row = x + i * n;
		float sum = 0;

#pragma omp simd reduction(+ : sum)
		for (size_t j = 0; j < n; j++)
			sum += row[j] * row[j];
		scale[i] = 1 / sqrtf(sum / (float)n + eps);
		norm_again(row, w, scale + i, 1, n, out + i * n);
	}
}

static void norm_back(const float *x, const float *w, const float *scale,
	const float *dy, size_t rows, size_t n, float *restrict dx,
	float *restrict dw)
{
	for (size_t i = 0; i < rows; i++, x += n, dy += n, dx += n) {
		float s = scale[i], dot = 0;

#pragma omp simd reduction(+ : dot)
		for (size_t j = 0; j < n; j++)
			dot += w[j] * dy[j] * x[j];
		dot *= s * s * s / (float)n;
#pragma omp simd
		for (size_t j = 0; j < n; j++) {
			dx[j] += s * w[j] * dy[j] - dot * x[j];
			dw[j] += dy[j] * x[j] * s;
		}
	}
}

static void rope(float *x, size_t rows, size_t stride, size_t heads,
	size_t half, size_t length, const float *cosine, const float *sine,
	float sign)
{
	for (size_t i = 0; i < rows; i++) {
		const float *c = cosine + i % length * half;
		const float *s = sine + i % length * half;

		for (size_t h = 0; h < heads; h++) {
			float *restrict a = x + i * stride + h * 2 * half;
			float *restrict b = a + half;

#pragma omp simd
			for (size_t j = 0; j < half; j++) {
				float u = a[j], v = b[j], t = sign * s[j];

				a[j] = u * c[j] - v * t;
				b[j] = v * c[j] + u * t;
			}
		}
	}
}

static void clear(float *x, size_t n)
{
#pragma omp simd
	for (size_t j = 0; j < n; j++)
		x[j] = 0;
}

static void softmax(float *restrict s, size_t rows, size_t n, size_t seen,
	float scale, float *restrict lse)
{
	for (size_t i = 0; i < rows; i++, s += n) {
		size_t k = seen + i < n ? seen + i : n;
		float top = largest(s, k), sum = 0;

#pragma omp simd reduction(+ : sum)
		for (size_t j = 0; j < k; j++) {
			s[j] = expo((s[j] - top) * scale);
			sum += s[j];
		}
		lse[i] = top * scale + logf(sum);
		sum = 1 / sum;
#pragma omp simd
		for (size_t j = 0; j < k; j++)
			s[j] *= sum;
		clear(s + k, n - k);
	}
}

static void softmax_again(float *restrict s, size_t rows, size_t n, size_t seen,
	float scale, const float *lse)
{
	for (size_t i = 0; i < rows; i++, s += n) {
		size_t k = seen + i < n ? seen + i : n;

#pragma omp simd
		for (size_t j = 0; j < k; j++)
			s[j] = expo(s[j] * scale - lse[i]);
		clear(s + k, n - k);
	}
}

static void softmax_back(const float *p, float *restrict dp, size_t rows,
	size_t n, size_t seen, float scale, const float *out, const float *dout,
	size_t width, size_t stride)
{
	for (size_t i = 0; i < rows; i++, p += n, dp += n) {
		size_t k = seen + i < n ? seen + i : n;
		float dot = 0;

#pragma omp simd reduction(+ : dot)
		for (size_t j = 0; j < width; j++)
			dot += out[j] * dout[j];
#pragma omp simd
		for (size_t j = 0; j < k; j++)
			dp[j] = p[j] * (dp[j] - dot) * scale;
		clear(dp + k, n - k);
		out += stride;
		dout += stride;
	}
}

static void swiglu(const float *gu, size_t rows, size_t n, float *restrict h)
{
	for (size_t i = 0; i < rows; i++, gu += 2 * n, h += n)
#pragma omp simd
		for (size_t j = 0; j < n; j++)
			h[j] = gu[j] * gu[n + j] / (1 + expo(-gu[j]));
}

static void swiglu_back(const float *gu, size_t rows, size_t n,
	float *restrict h, float *restrict dgu)
{
	for (size_t i = 0; i < rows; i++, gu += 2 * n, dgu += 2 * n, h += n)
#pragma omp simd
		for (size_t j = 0; j < n; j++) {
			float g = gu[j], u = gu[n + j], d = h[j];
			float s = 1 / (1 + expo(-g));

			h[j] = g * s * u;
			dgu[n + j] = d * g * s;
			dgu[j] = d * u * s * (1 + g * (1 - s));
		}
}

static double cross_entropy(float *restrict logits, const uint16_t *targets,
	size_t rows, size_t n, float scale)
{
	double loss = 0;

	for (size_t i = 0; i < rows; i++, logits += n) {
		float top = largest(logits, n), sum = 0;
		float target = logits[targets[i]];

#pragma omp simd reduction(+ : sum)
		for (size_t j = 0; j < n; j++) {
			logits[j] = expo(logits[j] - top);
			sum += logits[j];
		}
		loss += log((double)sum) + (double)top - (double)target;
		sum = scale / sum;
#pragma omp simd
		for (size_t j = 0; j < n; j++)
			logits[j] *= sum;
		logits[targets[i]] -= scale;
	}
	return loss;
}

static void add(float *restrict x, const float *y, size_t n)
{
#pragma omp simd
	for (size_t j = 0; j < n; j++)
		x[j] += y[j];
}

static double sum_squares(const float *x, size_t n)
{
	double sum = 0;

#pragma omp simd reduction(+ : sum)
	for (size_t j = 0; j < n; j++)
		sum += (double)x[j] * (double)x[j];
	return sum;
}

static void adamw(float *restrict x, const float *g, float *restrict m,
	float *restrict v, size_t n, const struct dl_adamw_step *s)
{
	const struct dl_adamw_step k = *s;

#pragma omp simd
	for (size_t j = 0; j < n; j++) {
		float d = g[j] * k.scale;

		m[j] = k.beta1 * m[j] + (1 - k.beta1) * d;
		v[j] = k.beta2 * v[j] + (1 - k.beta2) * d * d;
		x[j] = k.keep * x[j] -
		       k.rate * m[j] / (sqrtf(v[j]) * k.root + k.eps);
	}
}

const struct dl_train_kernels DL_TABLE = {
	.norm = norm,
	.norm_again = norm_again,
	.norm_back = norm_back,
	.rope = rope,
	.softmax = softmax,
	.softmax_again = softmax_again,
	.softmax_back = softmax_back,
	.swiglu = swiglu,
	.swiglu_back = swiglu_back,
	.cross_entropy = cross_entropy,
	.add = add,
	.sum_squares = sum_squares,
	.adamw = adamw,
};
