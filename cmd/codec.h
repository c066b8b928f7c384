/*
 * Codecs on command lines.
 */
#ifndef CMD_CODEC_H
#define CMD_CODEC_H

#include "tensor/quant.h"

/* The codec that s, the argument of that option, names; exits 64 if none. */
enum dl_codec cmd_codec(const char *option, const char *s);

#endif
