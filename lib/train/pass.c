#include "train/pass.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "train/attention.h"
#include "train/gemm.h"
#include "train/kernels.h"

/* Rows of activations that still fit a core's cache together with weights. */
enum { ROWS = 256, HEAD_NUMBERS = 1 << 18, LINE = 16 };

/* What a layer keeps of a pass forwards for the pass back, a row each. */
struct kept {
	float *in;		     /* [width]: the residual stream */
	float *qkv, *att, *lse;	     /* [qkv width], [width], [heads] */
	float *mid;		     /* [width]: the stream after attention */
	float *gate_up;		     /* [2 inner] */
	float *scale_in, *scale_mid; /* [1]: what the norms divided by */
};

struct dl_pass {
	const struct dl_llama *m;
	const struct dl_train_kernels *k;
	struct dl_attention attention;
	struct kept *kept; /* a layer, and one more for the last norm's input */
	size_t sequences;  /* at once */
	size_t head_rows;  /* rows of logits at once */
	uint16_t *ids, *targets;
	float *cosine, *sine;
	float *normed, *hidden; /* [rows, width], [rows, inner] */
	float *dx, *dnormed;	/* [rows, width] */
	float *dwide;		/* [rows, max(qkv width, 2 inner)] */
	float *logits;		/* [head_rows, vocab] */
	float *arena;
	size_t used; /* floats */
};

/* Takes n floats from the arena, a cache line's multiple; NULL while it
 * only counts. */
static float *take(struct dl_pass *p, size_t n)
{
	float *x = p->arena ? p->arena + p->used : NULL;

	p->used += (n + LINE - 1) / LINE * LINE;
	return x;
}

static void place_layer(struct dl_pass *p, struct kept *k, size_t rows)
{
	const struct dl_config *c = &p->m->config;

	k->in = take(p, rows * c->width);
	k->qkv = take(p, rows * dl_config_qkv_width(c));
	k->att = take(p, rows * c->width);
	k->lse = take(p, rows * c->heads);
	k->mid = take(p, rows * c->width);
	k->gate_up = take(p, rows * 2 * c->inner);
	k->scale_in = take(p, rows);
	k->scale_mid = take(p, rows);
}

/* Hands out the arena; called once to count and once to place. */
static void place(struct dl_pass *p)
{
	const struct dl_config *c = &p->m->config;
	size_t rows = p->sequences * c->context;
	size_t half = c->width / c->heads / 2, qkv = dl_config_qkv_width(c);

	p->used = 0;
	for (size_t i = 0; i < c->layers; i++)
		place_layer(p, &p->kept[i], rows);
	p->kept[c->layers].in = take(p, rows * c->width);
	p->kept[c->layers].scale_in = take(p, rows);
	p->cosine = take(p, c->context * half);
	p->sine = take(p, c->context * half);
	p->attention.p = take(p, DL_QUERIES * c->context);
	p->attention.dp = take(p, DL_QUERIES * c->context);
	p->normed = take(p, rows * c->width);
	p->hidden = take(p, rows * c->inner);
	p->dx = take(p, rows * c->width);
	p->dnormed = take(p, rows * c->width);
	p->dwide = take(p, rows * (qkv > 2 * c->inner ? qkv : 2 * c->inner));
	p->logits = take(p, p->head_rows * c->vocab);
}

static size_t clamp(size_t n, size_t most)
{
	return n < 1 ? 1 : n < most ? n : most;
}

struct dl_pass *dl_pass_new(const struct dl_llama *m, size_t sequences)
{
	const struct dl_config *c = &m->config;
	struct dl_pass *p = dl_alloc(sizeof(*p));

	p->m = m;
	p->k = dl_train_kernels();
	p->sequences = clamp(ROWS / c->context, sequences);
	p->head_rows =
		clamp(HEAD_NUMBERS / c->vocab, p->sequences * c->context);
	p->kept = dl_alloc_array(c->layers + 1, sizeof(*p->kept));
	p->ids = dl_alloc_array(p->sequences * c->context, sizeof(*p->ids));
	p->targets =
		dl_alloc_array(p->sequences * c->context, sizeof(*p->targets));
	place(p);
	p->arena = dl_big_alloc(p->used * sizeof(float));
	place(p);
	dl_rope_angles(c, p->cosine, p->sine);
	p->attention.config = c;
	p->attention.k = p->k;
	p->attention.cosine = p->cosine;
	p->attention.sine = p->sine;
	return p;
}

void dl_pass_free(struct dl_pass *p)
{
	if (!p)
		return;
	dl_big_free(p->arena, p->used * sizeof(float));
	free(p->kept);
	free(p->ids);
	free(p->targets);
	free(p);
}

/* From the layer's input to the next one's. */
static void layer_forward(struct dl_pass *p, const float *values, size_t layer,
	size_t sequences, size_t length)
{
	const struct dl_config *c = &p->m->config;
	const struct dl_llama_layer *w = &p->m->layers[layer];
	struct kept *k = &p->kept[layer];
	float *next = p->kept[layer + 1].in, eps = (float)c->eps;
	size_t rows = sequences * length, width = c->width, inner = c->inner;
	size_t qkv = dl_config_qkv_width(c);

	p->k->norm(k->in, values + w->norm_att, rows, width, eps, p->normed,
		k->scale_in);
	dl_gemm_nt(rows, qkv, width, p->normed, width, values + w->qkv, width,
		0, k->qkv, qkv);
	dl_attention(&p->attention, sequences, length, k->qkv, k->att, k->lse);
	memcpy(k->mid, k->in, rows * width * sizeof(float));
	dl_gemm_nt(rows, width, width, k->att, width, values + w->out, width, 1,
		k->mid, width);

	p->k->norm(k->mid, values + w->norm_mlp, rows, width, eps, p->normed,
		k->scale_mid);
	dl_gemm_nt(rows, 2 * inner, width, p->normed, width,
		values + w->gate_up, width, 0, k->gate_up, 2 * inner);
	p->k->swiglu(k->gate_up, rows, inner, p->hidden);
	memcpy(next, k->mid, rows * width * sizeof(float));
	dl_gemm_nt(rows, width, inner, p->hidden, inner, values + w->down,
		inner, 1, next, width);
}

/* The feed-forward half back: dx of the layer's output becomes that of mid. */
static void mlp_back(struct dl_pass *p, const float *values, float *grad,
	size_t layer, size_t rows)
{
	const struct dl_llama_layer *w = &p->m->layers[layer];
	const struct kept *k = &p->kept[layer];
	size_t width = p->m->config.width, inner = p->m->config.inner;

	dl_gemm_nn(rows, inner, width, p->dx, width, values + w->down, inner, 0,
		p->hidden, inner);
	p->k->swiglu_back(k->gate_up, rows, inner, p->hidden, p->dwide);
	dl_gemm_tn(width, inner, rows, p->dx, width, p->hidden, inner, 1,
		grad + w->down, inner);
	p->k->norm_again(k->mid, values + w->norm_mlp, k->scale_mid, rows,
		width, p->normed);
	dl_gemm_tn(2 * inner, width, rows, p->dwide, 2 * inner, p->normed,
		width, 1, grad + w->gate_up, width);
	dl_gemm_nn(rows, width, 2 * inner, p->dwide, 2 * inner,
		values + w->gate_up, width, 0, p->dnormed, width);
	p->k->norm_back(k->mid, values + w->norm_mlp, k->scale_mid, p->dnormed,
		rows, width, p->dx, grad + w->norm_mlp);
}

/* The attention half back: dx of mid becomes that of the layer's input. */
static void attention_back(struct dl_pass *p, const float *values, float *grad,
	size_t layer, size_t sequences, size_t length)
{
	const struct dl_llama_layer *w = &p->m->layers[layer];
	const struct kept *k = &p->kept[layer];
	size_t rows = sequences * length, width = p->m->config.width;
	size_t qkv = dl_config_qkv_width(&p->m->config);

	dl_gemm_tn(width, width, rows, p->dx, width, k->att, width, 1,
		grad + w->out, width);
	dl_gemm_nn(rows, width, width, p->dx, width, values + w->out, width, 0,
		p->dnormed, width);
	dl_attention_back(&p->attention, sequences, length, k->qkv, k->att,
		k->lse, p->dnormed, p->dwide);
	p->k->norm_again(k->in, values + w->norm_att, k->scale_in, rows, width,
		p->normed);
	dl_gemm_tn(qkv, width, rows, p->dwide, qkv, p->normed, width, 1,
		grad + w->qkv, width);
	dl_gemm_nn(rows, width, qkv, p->dwide, qkv, values + w->qkv, width, 0,
		p->dnormed, width);
	p->k->norm_back(k->in, values + w->norm_att, k->scale_in, p->dnormed,
		rows, width, p->dx, grad + w->norm_att);
}

/* From ids through all layers to p->normed, the input of the output head. */
static void forward(
	struct dl_pass *p, const float *values, size_t sequences, size_t length)
{
	const struct dl_config *c = &p->m->config;
	size_t rows = sequences * length;
	const struct kept *last = &p->kept[c->layers];

	for (size_t i = 0; i < rows; i++)
		memcpy(p->kept[0].in + i * c->width,
			values + p->m->embed + p->ids[i] * c->width,
			c->width * sizeof(float));
	for (size_t i = 0; i < c->layers; i++)
		layer_forward(p, values, i, sequences, length);
	p->k->norm(last->in, values + p->m->norm, rows, c->width, (float)c->eps,
		p->normed, last->scale_in);
}

/*
 * The output head in blocks of rows, forwards and, with grad, back to
 * p->dnormed at once, so that a large vocabulary needs no large room.
 */
static double head(struct dl_pass *p, const float *values, size_t rows,
	float scale, float *grad)
{
	const struct dl_config *c = &p->m->config;
	const float *w = values + p->m->head;
	size_t width = c->width, vocab = c->vocab;
	double loss = 0;

	for (size_t i = 0; i < rows; i += p->head_rows) {
		size_t n = clamp(rows - i, p->head_rows);
		float *x = p->normed + i * width;

		dl_gemm_nt(n, vocab, width, x, width, w, width, 0, p->logits,
			vocab);
		loss += p->k->cross_entropy(
			p->logits, p->targets + i, n, vocab, scale);
		if (!grad)
			continue;
		dl_gemm_tn(vocab, width, n, p->logits, vocab, x, width, 1,
			grad + p->m->head, width);
		dl_gemm_nn(n, width, vocab, p->logits, vocab, w, width, 0,
			p->dnormed + i * width, width);
	}
	return loss;
}

/* From p->dnormed, the gradient of the head's input, down to the ids. */
static void backward(struct dl_pass *p, const float *values, size_t sequences,
	size_t length, float *grad)
{
	const struct dl_config *c = &p->m->config;
	size_t rows = sequences * length;
	const struct kept *last = &p->kept[c->layers];

	memset(p->dx, 0, rows * c->width * sizeof(float));
	p->k->norm_back(last->in, values + p->m->norm, last->scale_in,
		p->dnormed, rows, c->width, p->dx, grad + p->m->norm);
	for (size_t i = c->layers; i-- > 0;) {
		mlp_back(p, values, grad, i, rows);
		attention_back(p, values, grad, i, sequences, length);
	}
	for (size_t i = 0; i < rows; i++)
		p->k->add(grad + p->m->embed + p->ids[i] * c->width,
			p->dx + i * c->width, c->width);
}

static double run(struct dl_pass *p, const float *values,
	const struct dl_batch *b, float scale, float *grad)
{
	double loss = 0;

	for (size_t i = 0; i < b->sequences; i += p->sequences) {
		size_t n = clamp(b->sequences - i, p->sequences);

		for (size_t s = 0; s < n; s++) {
			const uint16_t *from =
				b->ids + (i + s) * (b->length + 1);
			size_t to = s * b->length, size = b->length * 2;

			memcpy(p->ids + to, from, size);
			memcpy(p->targets + to, from + 1, size);
		}
		forward(p, values, n, b->length);
		loss += head(p, values, n * b->length, scale, grad);
		if (grad)
			backward(p, values, n, b->length, grad);
	}
	return loss;
}

double dl_pass_loss(
	struct dl_pass *p, const float *values, const struct dl_batch *b)
{
	return run(p, values, b, 1, NULL);
}

double dl_pass_gradient(struct dl_pass *p, const float *values,
	const struct dl_batch *b, float scale, float *grad)
{
	return run(p, values, b, scale, grad);
}

void dl_pass_next(struct dl_pass *p, const float *values, const uint16_t *ids,
	size_t n, float *logits)
{
	const struct dl_config *c = &p->m->config;

	memcpy(p->ids, ids, n * sizeof(*ids));
	forward(p, values, 1, n);
	dl_gemm_nt(1, c->vocab, c->width, p->normed + (n - 1) * c->width,
		c->width, values + p->m->head, c->width, 0, logits, c->vocab);
}
