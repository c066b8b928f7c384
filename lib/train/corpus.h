/*
 * Text to train on: files of bytes, one token a byte, or of 16-bit
 * little-endian token ids, read one after another into memory as one run of
 * tokens; what zstd compressed is decompressed. Its end is held out, to see how
 * well the model does on text that it was not trained on.
 *
 * A sample is a function of (key, clock) alone, so nothing but the clock must
 * be saved to go on where training stopped.
 */
#ifndef DL_TRAIN_CORPUS_H
#define DL_TRAIN_CORPUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct dl_corpus {
	unsigned char *data;
	unsigned width; /* bytes a token: 1 or 2 */
	size_t tokens;
	size_t train; /* tokens before the part that is held out */
};

/*
 * Reads n files. ids says that they hold 16-bit ids, which must be below
 * vocab; bytes must be, too. held_out, 0 to 1, is the part to hold out. 65
 * for devices, which may have no end, and for more than the machine's memory.
 */
int dl_corpus_read(struct dl_corpus *c, char *const *paths, size_t n, int ids,
	size_t vocab, double held_out, struct dl_err *e);
void dl_corpus_release(struct dl_corpus *c);

/* count tokens from the one at `at`. */
void dl_corpus_copy(
	const struct dl_corpus *c, size_t at, size_t count, uint16_t *out);

/* 0, or 65 when training has no room for length tokens and a target. */
int dl_corpus_check(const struct dl_corpus *c, size_t length, struct dl_err *e);

/* sequences of length + 1 tokens of the training part, for this clock. */
void dl_corpus_sample(const struct dl_corpus *c, uint64_t key, uint64_t clock,
	size_t sequences, size_t length, uint16_t *out);

#endif
