/*
 * What each fuzz target defines: libFuzzer calls it with bytes of its own
 * making, replay.c with the corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#endif
