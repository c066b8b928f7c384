/*
 * The shape of a Llama model, as Hugging Face's config.json has it.
 */
#ifndef DL_TRAIN_CONFIG_H
#define DL_TRAIN_CONFIG_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"

struct dl_config {
	size_t layers;	 /* num_hidden_layers */
	size_t heads;	 /* num_attention_heads */
	size_t kv_heads; /* num_key_value_heads: divides heads */
	size_t width;	 /* hidden_size: heads times an even head width */
	size_t inner;	 /* intermediate_size, of the feed-forward part */
	size_t vocab;	 /* vocab_size: at most 65536, ids are 16 bits wide */
	size_t context;	 /* max_position_embeddings */
	double eps;	 /* rms_norm_eps */
	double theta;	 /* rope_theta */
	int tied;	 /* tie_word_embeddings: no lm_head.weight */
};

/* 0, or 65 when no model can have this shape. */
int dl_config_check(const struct dl_config *c, struct dl_err *e);

/* Parses or reads a config.json, and checks it. 65 when it asks for what we do
 * not compute: biases, scaled positions, another activation, another model
 * type. */
int dl_config_parse(
	struct dl_config *c, const void *text, size_t n, struct dl_err *e);
int dl_config_read(struct dl_config *c, const char *path, struct dl_err *e);
/* Appends it as config.json. */
void dl_config_write(const struct dl_config *c, struct dl_buf *out);

#endif
