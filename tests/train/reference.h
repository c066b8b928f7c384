/*
 * The model once more, written for reading: every loop plain, every number a
 * double, every intermediate kept. What lib/train computes is checked against
 * it, and its own gradient against finite differences of its own loss.
 */
#ifndef TESTS_TRAIN_REFERENCE_H
#define TESTS_TRAIN_REFERENCE_H

#include "train/pass.h"

/* The summed cross entropy of b; adds the gradient to grad unless NULL. */
double reference_loss(const struct dl_llama *m, const double *values,
	const struct dl_batch *b, double *grad);

#endif
