/*
 * A Llama model's parameters: Hugging Face's names and shapes, all in one flat
 * array of f32. Values, gradients and optimizer moments are arrays of the same
 * form, so one set of places serves them all.
 */
#ifndef DL_TRAIN_LLAMA_H
#define DL_TRAIN_LLAMA_H

#include <stdint.h>

#include "train/config.h"

/* A tensor: shape[0] rows of shape[1], or shape[0] numbers when rank is 1. */
struct dl_llama_param {
	char *name;
	unsigned rank;
	size_t shape[2];
	size_t at, count; /* its numbers in the flat array */
};

/*
 * Where a layer's weights lie. Query, key and value projections follow each
 * other, and so do gate and up, so that each group is one matrix product.
 */
struct dl_llama_layer {
	size_t norm_att; /* [width] */
	size_t qkv;	 /* [width + 2 kv width, width] */
	size_t out;	 /* [width, width] */
	size_t norm_mlp; /* [width] */
	size_t gate_up;	 /* [2 inner, width] */
	size_t down;	 /* [width, inner] */
};

struct dl_llama {
	struct dl_config config;
	struct dl_llama_param *params;
	size_t n_params;
	size_t size;		  /* numbers in the flat array */
	size_t embed, norm, head; /* head is embed when they are tied */
	struct dl_llama_layer *layers;
};

/* config has passed dl_config_check. Release with dl_llama_release. */
void dl_llama_init(struct dl_llama *m, const struct dl_config *config);
void dl_llama_release(struct dl_llama *m);

/* The tensor of that name (n bytes), or NULL. */
const struct dl_llama_param *dl_llama_find(
	const struct dl_llama *m, const char *name, size_t n);

/*
 * Fills values (m->size numbers): matrices normal with deviation 1 /
 * sqrt(width), which small models learn from faster than from GPT-2's 0.02;
 * those that write to the residual stream are divided by sqrt(2 layers); norms
 * are 1.
 */
void dl_llama_randomise(const struct dl_llama *m, uint64_t seed, float *values);

/* Key and value width: kv_heads times the width of a head. */
static inline size_t dl_config_kv_width(const struct dl_config *c)
{
	return c->width / c->heads * c->kv_heads;
}

/* The width of query, key and value side by side. */
static inline size_t dl_config_qkv_width(const struct dl_config *c)
{
	return c->width + 2 * dl_config_kv_width(c);
}

#endif
