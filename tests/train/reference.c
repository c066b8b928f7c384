#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* y [rows, n] = x [rows, k] times w [n, k] transposed. */
static void linear(const double *x, const double *w, size_t rows, size_t k,
	size_t n, double *y)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < n; j++) {
			double sum = 0;

			for (size_t l = 0; l < k; l++)
				sum += x[i * k + l] * w[j * k + l];
			y[i * n + j] = sum;
		}
}

/* Adds to dx and dw. */
static void linear_back(const double *x, const double *w, const double *dy,
	size_t rows, size_t k, size_t n, double *dx, double *dw)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < n; j++)
			for (size_t l = 0; l < k; l++) {
				dx[i * k + l] += dy[i * n + j] * w[j * k + l];
				dw[j * k + l] += dy[i * n + j] * x[i * k + l];
			}
}

static double rms(const double *x, size_t n, double eps)
{
	double sum = 0;

	for (size_t j = 0; j < n; j++)
		sum += x[j] * x[j];
	return sqrt(sum / (double)n + eps);
}

static void norm(const double *x, const double *w, size_t rows, size_t n,
	double eps, double *y)
{
	for (size_t i = 0; i < rows; i++) {
		double r = rms(x + i * n, n, eps);

		for (size_t j = 0; j < n; j++)
			y[i * n + j] = w[j] * x[i * n + j] / r;
	}
}

static void norm_back(const double *x, const double *w, const double *dy,
	size_t rows, size_t n, double eps, double *dx, double *dw)
{
	for (size_t i = 0; i < rows; i++) {
		const double *a = x + i * n, *d = dy + i * n;
		double r = rms(a, n, eps), dot = 0;

		for (size_t j = 0; j < n; j++)
			dot += d[j] * w[j] * a[j];
		for (size_t j = 0; j < n; j++) {
			dx[i * n + j] += d[j] * w[j] / r -
					 a[j] * dot / (r * r * r * (double)n);
			dw[j] += d[j] * a[j] / r;
		}
	}
}

/* Turns each head of x [length, heads * width] by its position. */
static void rotate(double *x, size_t length, size_t heads, size_t width,
	double theta, double sign)
{
	size_t half = width / 2;

	for (size_t t = 0; t < length; t++)
		for (size_t h = 0; h < heads; h++)
			for (size_t j = 0; j < half; j++) {
				double *a = x + (t * heads + h) * width + j;
				double angle =
					sign * (double)t *
					pow(theta, -2.0 * (double)j /
							   (double)width);
				double u = a[0], v = a[half];

				a[0] = u * cos(angle) - v * sin(angle);
				a[half] = v * cos(angle) + u * sin(angle);
			}
}

/* One sequence's attention; p [heads, length, length] is kept. */
static void attend(const struct dl_config *c, size_t length, const double *q,
	const double *k, const double *v, double *p, double *out)
{
	size_t w = c->width / c->heads, kv = dl_config_kv_width(c);

	for (size_t h = 0; h < c->heads; h++)
		for (size_t t = 0; t < length; t++) {
			size_t g = h / (c->heads / c->kv_heads) * w;
			double *row = p + (h * length + t) * length, sum = 0;

			for (size_t s = 0; s <= t; s++) {
				double dot = 0;

				for (size_t j = 0; j < w; j++)
					dot += q[t * c->width + h * w + j] *
					       k[s * kv + g + j];
				row[s] = exp(dot / sqrt((double)w));
				sum += row[s];
			}
			for (size_t s = 0; s <= t; s++) {
				row[s] /= sum;
				for (size_t j = 0; j < w; j++)
					out[t * c->width + h * w + j] +=
						row[s] * v[s * kv + g + j];
			}
		}
}

static void attend_back(const struct dl_config *c, size_t length,
	const double *q, const double *k, const double *v, const double *p,
	const double *dout, double *dq, double *dk, double *dv)
{
	size_t w = c->width / c->heads, kv = dl_config_kv_width(c);
	double scale = 1 / sqrt((double)w);
	double *dp = dl_alloc_array(length, sizeof(*dp));

	for (size_t h = 0; h < c->heads; h++)
		for (size_t t = 0; t < length; t++) {
			size_t g = h / (c->heads / c->kv_heads) * w;
			size_t at = t * c->width + h * w;
			const double *row = p + (h * length + t) * length;
			double dot = 0;

			for (size_t s = 0; s <= t; s++) {
				dp[s] = 0;
				for (size_t j = 0; j < w; j++) {
					dp[s] += dout[at + j] *
						 v[s * kv + g + j];
					dv[s * kv + g + j] +=
						dout[at + j] * row[s];
				}
				dot += dp[s] * row[s];
			}
			for (size_t s = 0; s <= t; s++) {
				double d = row[s] * (dp[s] - dot) * scale;

				for (size_t j = 0; j < w; j++) {
					dq[at + j] += d * k[s * kv + g + j];
					dk[s * kv + g + j] += d * q[at + j];
				}
			}
		}
	free(dp);
}

/* A layer's intermediates, and their gradients in a second one. */
struct trace {
	double *in, *n1, *q, *k, *v, *p, *att, *mid, *n2, *gate, *up, *h;
};

static double *numbers(size_t n)
{
	return dl_alloc_array(n, sizeof(double));
}

static struct trace trace_new(const struct dl_config *c, size_t length)
{
	size_t w = length * c->width, kv = length * dl_config_kv_width(c);
	size_t f = length * c->inner;

	return (struct trace){numbers(w), numbers(w), numbers(w), numbers(kv),
		numbers(kv), numbers(c->heads * length * length), numbers(w),
		numbers(w), numbers(w), numbers(f), numbers(f), numbers(f)};
}

static void trace_free(struct trace *t)
{
	double *all[] = {t->in, t->n1, t->q, t->k, t->v, t->p, t->att, t->mid,
		t->n2, t->gate, t->up, t->h};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		free(all[i]);
}

static void layer(const struct dl_llama *m, const double *x, size_t index,
	size_t n, struct trace *t, double *out)
{
	const struct dl_config *c = &m->config;
	const struct dl_llama_layer *l = &m->layers[index];
	size_t w = c->width, kv = dl_config_kv_width(c), f = c->inner;
	const double *wq = x + l->qkv, *wk = wq + w * w, *wv = wk + kv * w;

	norm(t->in, x + l->norm_att, n, w, c->eps, t->n1);
	linear(t->n1, wq, n, w, w, t->q);
	linear(t->n1, wk, n, w, kv, t->k);
	linear(t->n1, wv, n, w, kv, t->v);
	rotate(t->q, n, c->heads, w / c->heads, c->theta, 1);
	rotate(t->k, n, c->kv_heads, w / c->heads, c->theta, 1);
	attend(c, n, t->q, t->k, t->v, t->p, t->att);
	linear(t->att, x + l->out, n, w, w, t->mid);
	for (size_t i = 0; i < n * w; i++)
		t->mid[i] += t->in[i];
	norm(t->mid, x + l->norm_mlp, n, w, c->eps, t->n2);
	linear(t->n2, x + l->gate_up, n, w, f, t->gate);
	linear(t->n2, x + l->gate_up + f * w, n, w, f, t->up);
	for (size_t i = 0; i < n * f; i++)
		t->h[i] = t->gate[i] / (1 + exp(-t->gate[i])) * t->up[i];
	linear(t->h, x + l->down, n, f, w, out);
	for (size_t i = 0; i < n * w; i++)
		out[i] += t->mid[i];
}

/* dout becomes the gradient of the layer's input. */
static void layer_back(const struct dl_llama *m, const double *x, size_t index,
	size_t n, const struct trace *t, double *dout, double *grad)
{
	const struct dl_config *c = &m->config;
	const struct dl_llama_layer *l = &m->layers[index];
	size_t w = c->width, kv = dl_config_kv_width(c), f = c->inner;
	const double *wq = x + l->qkv, *wk = wq + w * w, *wv = wk + kv * w;
	double *gq = grad + l->qkv, *gk = gq + w * w, *gv = gk + kv * w;
	struct trace d = trace_new(c, n);

	linear_back(t->h, x + l->down, dout, n, f, w, d.h, grad + l->down);
	for (size_t i = 0; i < n * f; i++) {
		double s = 1 / (1 + exp(-t->gate[i]));

		d.up[i] = d.h[i] * t->gate[i] * s;
		d.gate[i] = d.h[i] * t->up[i] * (s + t->gate[i] * s * (1 - s));
	}
	linear_back(t->n2, x + l->gate_up, d.gate, n, w, f, d.n2,
		grad + l->gate_up);
	linear_back(t->n2, x + l->gate_up + f * w, d.up, n, w, f, d.n2,
		grad + l->gate_up + f * w);
	norm_back(t->mid, x + l->norm_mlp, d.n2, n, w, c->eps, dout,
		grad + l->norm_mlp);
	linear_back(t->att, x + l->out, dout, n, w, w, d.att, grad + l->out);
	attend_back(c, n, t->q, t->k, t->v, t->p, d.att, d.q, d.k, d.v);
	rotate(d.q, n, c->heads, w / c->heads, c->theta, -1);
	rotate(d.k, n, c->kv_heads, w / c->heads, c->theta, -1);
	linear_back(t->n1, wq, d.q, n, w, w, d.n1, gq);
	linear_back(t->n1, wk, d.k, n, w, kv, d.n1, gk);
	linear_back(t->n1, wv, d.v, n, w, kv, d.n1, gv);
	norm_back(t->in, x + l->norm_att, d.n1, n, w, c->eps, dout,
		grad + l->norm_att);
	trace_free(&d);
}

/* Cross entropy; the logits become their gradient. */
static double entropy(
	double *logits, const uint16_t *targets, size_t rows, size_t n)
{
	double loss = 0;

	for (size_t i = 0; i < rows; i++) {
		double *row = logits + i * n, sum = 0;

		for (size_t j = 0; j < n; j++)
			sum += exp(row[j]);
		loss += log(sum) - row[targets[i]];
		for (size_t j = 0; j < n; j++)
			row[j] = exp(row[j]) / sum;
		row[targets[i]] -= 1;
	}
	return loss;
}

static double sequence(const struct dl_llama *m, const double *x,
	const uint16_t *ids, size_t n, double *grad)
{
	const struct dl_config *c = &m->config;
	size_t w = c->width;
	struct trace *t = dl_alloc_array(c->layers + 1, sizeof(*t));
	double *logits = numbers(n * c->vocab), *dlast = numbers(n * w);
	double *dx = numbers(n * w), loss;

	for (size_t i = 0; i <= c->layers; i++)
		t[i] = trace_new(c, n);
	for (size_t i = 0; i < n; i++)
		memcpy(t[0].in + i * w, x + m->embed + ids[i] * w,
			w * sizeof(double));
	for (size_t i = 0; i < c->layers; i++)
		layer(m, x, i, n, &t[i], t[i + 1].in);
	struct trace *last = &t[c->layers];
	norm(last->in, x + m->norm, n, w, c->eps, last->n1);
	linear(last->n1, x + m->head, n, w, c->vocab, logits);
	loss = entropy(logits, ids + 1, n, c->vocab);
	if (grad) {
		linear_back(last->n1, x + m->head, logits, n, w, c->vocab,
			dlast, grad + m->head);
		norm_back(last->in, x + m->norm, dlast, n, w, c->eps, dx,
			grad + m->norm);
		for (size_t i = c->layers; i-- > 0;)
			layer_back(m, x, i, n, &t[i], dx, grad);
		for (size_t i = 0; i < n * w; i++)
			grad[m->embed + ids[i / w] * w + i % w] += dx[i];
	}
	for (size_t i = 0; i <= c->layers; i++)
		trace_free(&t[i]);
	free(t);
	free(logits);
	free(dlast);
	free(dx);
	return loss;
}

double reference_loss(const struct dl_llama *m, const double *values,
	const struct dl_batch *b, double *grad)
{
	double loss = 0;

	for (size_t i = 0; i < b->sequences; i++)
		loss += sequence(m, values, b->ids + i * (b->length + 1),
			b->length, grad);
	return loss;
}
