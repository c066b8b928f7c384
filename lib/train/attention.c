#include "train/attention.h"

#include <math.h>

#include "train/gemm.h"

void dl_rope_angles(const struct dl_config *c, float *cosine, float *sine)
{
	size_t half = c->width / c->heads / 2;

	for (size_t t = 0; t < c->context; t++)
		for (size_t j = 0; j < half; j++) {
			double angle = (double)t *
				       pow(c->theta, -(double)j / (double)half);

			cosine[t * half + j] = (float)cos(angle);
			sine[t * half + j] = (float)sin(angle);
		}
}

/* Queries and keys lie side by side, so one call turns them all. */
static void turn(const struct dl_attention *a, size_t rows, size_t length,
	float *qkv, float sign)
{
	const struct dl_config *c = a->config;

	a->k->rope(qkv, rows, dl_config_qkv_width(c), c->heads + c->kv_heads,
		c->width / c->heads / 2, length, a->cosine, a->sine, sign);
}

/* Where one head of one sequence lies, in floats from the arrays' starts. */
struct head {
	size_t q, k, v; /* in qkv, row stride qkv width */
	size_t out;	/* in out, row stride width */
	size_t lse;
};

static struct head find_head(
	const struct dl_config *c, size_t length, size_t sequence, size_t h)
{
	size_t width = c->width / c->heads;
	size_t kv = h / (c->heads / c->kv_heads) * width;
	size_t row = sequence * length * dl_config_qkv_width(c);

	return (struct head){
		.q = row + h * width,
		.k = row + c->width + kv,
		.v = row + c->width + dl_config_kv_width(c) + kv,
		.out = sequence * length * c->width + h * width,
		.lse = (sequence * c->heads + h) * length,
	};
}

static void forward(const struct dl_attention *a, const struct head *at,
	size_t length, const float *qkv, float *out, float *lse)
{
	const struct dl_config *c = a->config;
	size_t width = c->width / c->heads, ld = dl_config_qkv_width(c);
	float scale = 1 / sqrtf((float)width);

	for (size_t i = 0; i < length; i += DL_QUERIES) {
		size_t n = length - i < DL_QUERIES ? length - i : DL_QUERIES;
		size_t keys = i + n;

		dl_gemm_nt(n, keys, width, qkv + at->q + i * ld, ld,
			qkv + at->k, ld, 0, a->p, keys);
		a->k->softmax(a->p, n, keys, i + 1, scale, lse + at->lse + i);
		dl_gemm_nn(n, width, keys, a->p, keys, qkv + at->v, ld, 0,
			out + at->out + i * c->width, c->width);
	}
}

void dl_attention(const struct dl_attention *a, size_t sequences, size_t length,
	float *qkv, float *out, float *lse)
{
	turn(a, sequences * length, length, qkv, 1);
	for (size_t s = 0; s < sequences; s++)
		for (size_t h = 0; h < a->config->heads; h++) {
			struct head at = find_head(a->config, length, s, h);

			forward(a, &at, length, qkv, out, lse);
		}
}

/*
 * One block of queries of one head. Blocks go from the last, which sees every
 * key, to the first, so that only the last of the first head of a group
 * overwrites the gradients of keys and values.
 */
static void backward(const struct dl_attention *a, const struct head *at,
	size_t i, size_t n, const float *qkv, const float *out,
	const float *lse, const float *dout, float *dqkv, float more)
{
	const struct dl_config *c = a->config;
	size_t width = c->width / c->heads, ld = dl_config_qkv_width(c);
	size_t keys = i + n, row = at->out + i * c->width;
	float scale = 1 / sqrtf((float)width);
	const float *q = qkv + at->q + i * ld;

	dl_gemm_nt(n, keys, width, q, ld, qkv + at->k, ld, 0, a->p, keys);
	a->k->softmax_again(a->p, n, keys, i + 1, scale, lse + at->lse + i);
	dl_gemm_tn(keys, width, n, a->p, keys, dout + row, c->width, more,
		dqkv + at->v, ld);
	dl_gemm_nt(n, keys, width, dout + row, c->width, qkv + at->v, ld, 0,
		a->dp, keys);
	a->k->softmax_back(a->p, a->dp, n, keys, i + 1, scale, out + row,
		dout + row, width, c->width);
	dl_gemm_nn(n, width, keys, a->dp, keys, qkv + at->k, ld, 0,
		dqkv + at->q + i * ld, ld);
	dl_gemm_tn(keys, width, n, a->dp, keys, q, ld, more, dqkv + at->k, ld);
}

void dl_attention_back(const struct dl_attention *a, size_t sequences,
	size_t length, const float *qkv, const float *out, const float *lse,
	const float *dout, float *dqkv)
{
	const struct dl_config *c = a->config;
	size_t last = (length - 1) / DL_QUERIES * DL_QUERIES;

	for (size_t s = 0; s < sequences; s++)
		for (size_t h = 0; h < c->heads; h++) {
			struct head at = find_head(c, length, s, h);
			int first = h % (c->heads / c->kv_heads) == 0;

			backward(a, &at, last, length - last, qkv, out, lse,
				dout, dqkv, first ? 0 : 1);
			for (size_t i = last; i > 0; i -= DL_QUERIES)
				backward(a, &at, i - DL_QUERIES, DL_QUERIES,
					qkv, out, lse, dout, dqkv, 1);
		}
	turn(a, sequences * length, length, dqkv, -1);
}
