/*
 * The BLAS that makes matrix products, OpenBLAS, loaded when there are some to
 * make: binding its thousands of kernels takes longer than all else of a
 * program's start.
 */
#ifndef DL_TRAIN_BLAS_H
#define DL_TRAIN_BLAS_H

#include "base/err.h"

/* Before the first product, and before there are other threads; again is fine.
 * 69 when it cannot be loaded. Each product runs on the thread that asks for
 * it. */
int dl_blas_load(struct dl_err *e);

#endif
