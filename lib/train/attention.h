/*
 * Causal attention with rotated positions, a head at a time in blocks of
 * queries, so that scores take room for one block and not for the square of
 * the context; going back they are made again from each row's log of the sum
 * of exponentials.
 */
#ifndef DL_TRAIN_ATTENTION_H
#define DL_TRAIN_ATTENTION_H

#include "train/llama.h"
#include "train/kernels.h"

enum { DL_QUERIES = 64 }; /* rows of scores made at once */

struct dl_attention {
	const struct dl_config *config;
	const struct dl_train_kernels *k;
	const float *cosine, *sine; /* [context, half a head's width] */
	float *p, *dp;		    /* [DL_QUERIES, context] each: scratch */
};

/* Fills the tables of angles, [context, head width / 2] each. */
void dl_rope_angles(const struct dl_config *c, float *cosine, float *sine);

/*
 * sequences of length positions: qkv [rows, qkv width], queries and keys
 * turned in place; out [rows, width]; lse [rows, heads] in the order (sequence,
 * head, position).
 */
void dl_attention(const struct dl_attention *a, size_t sequences, size_t length,
	float *qkv, float *out, float *lse);

/* From dout: dqkv, overwritten. qkv, out and lse as dl_attention left them. */
void dl_attention_back(const struct dl_attention *a, size_t sequences,
	size_t length, const float *qkv, const float *out, const float *lse,
	const float *dout, float *dqkv);

#endif
