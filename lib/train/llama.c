#include "train/llama.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

enum { LAYER_PARAMS = 9, OTHER_PARAMS = 3 };

/* Appends a tensor; columns is 0 for a vector. Returns its place. */
static size_t add(struct dl_llama *m, char *name, size_t rows, size_t columns)
{
	struct dl_llama_param *p = &m->params[m->n_params++];

	p->name = name;
	p->rank = columns ? 2 : 1;
	p->shape[0] = rows;
	p->shape[1] = columns;
	p->count = rows * (columns ? columns : 1);
	p->at = m->size;
	m->size += p->count;
	return p->at;
}

static void add_layer(struct dl_llama *m, size_t i)
{
	const struct dl_config *c = &m->config;
	struct dl_llama_layer *l = &m->layers[i];
	size_t w = c->width, kv = dl_config_kv_width(c);

#define NAME(part) dl_sprintf("model.layers.%zu." part ".weight", i)
	l->norm_att = add(m, NAME("input_layernorm"), w, 0);
	l->qkv = add(m, NAME("self_attn.q_proj"), w, w);
	add(m, NAME("self_attn.k_proj"), kv, w);
	add(m, NAME("self_attn.v_proj"), kv, w);
	l->out = add(m, NAME("self_attn.o_proj"), w, w);
	l->norm_mlp = add(m, NAME("post_attention_layernorm"), w, 0);
	l->gate_up = add(m, NAME("mlp.gate_proj"), c->inner, w);
	add(m, NAME("mlp.up_proj"), c->inner, w);
	l->down = add(m, NAME("mlp.down_proj"), w, c->inner);
#undef NAME
}

void dl_llama_init(struct dl_llama *m, const struct dl_config *config)
{
	size_t w = config->width;

	memset(m, 0, sizeof(*m));
	m->config = *config;
	m->params = dl_alloc_array(config->layers * LAYER_PARAMS + OTHER_PARAMS,
		sizeof(*m->params));
	m->layers = dl_alloc_array(config->layers, sizeof(*m->layers));
	m->embed = add(
		m, dl_strdup("model.embed_tokens.weight"), config->vocab, w);
	for (size_t i = 0; i < config->layers; i++)
		add_layer(m, i);
	m->norm = add(m, dl_strdup("model.norm.weight"), w, 0);
	m->head = m->embed;
	if (!config->tied)
		m->head = add(m, dl_strdup("lm_head.weight"), config->vocab, w);
}

void dl_llama_release(struct dl_llama *m)
{
	for (size_t i = 0; i < m->n_params; i++)
		free(m->params[i].name);
	free(m->params);
	free(m->layers);
	memset(m, 0, sizeof(*m));
}

const struct dl_llama_param *dl_llama_find(
	const struct dl_llama *m, const char *name, size_t n)
{
	for (size_t i = 0; i < m->n_params; i++)
		if (strlen(m->params[i].name) == n &&
			!memcmp(m->params[i].name, name, n))
			return &m->params[i];
	return NULL;
}

void dl_llama_randomise(const struct dl_llama *m, uint64_t seed, float *values)
{
	double deviation = 1 / sqrt((double)m->config.width);
	double residual = deviation / sqrt(2.0 * (double)m->config.layers);

	for (size_t i = 0; i < m->n_params; i++) {
		const struct dl_llama_param *p = &m->params[i];
		struct dl_rng r = {dl_rng_key(seed, i), 0};
		int last = strstr(p->name, "o_proj") ||
			   strstr(p->name, "down_proj");

		for (size_t j = 0; j < p->count; j++)
			values[p->at + j] =
				p->rank == 1 ? 1
					     : (float)(dl_rng_normal(&r) *
						       (last ? residual
							     : deviation));
	}
}
