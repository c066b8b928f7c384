/*
 * The jobs of dl-frag, one file each. Each reads its own options from argv
 * (argv[0] is the program) and returns the exit status.
 */
#ifndef CMD_FRAG_H
#define CMD_FRAG_H

#include "base/err.h"
#include "tensor/model.h"

int frag_plan(int argc, char **argv);
int frag_split(int argc, char **argv);
int frag_show(int argc, char **argv);
int frag_check(int argc, char **argv);
int frag_diff(int argc, char **argv);

/* A model, or any file of records seen as one. */
int frag_open(struct dl_model *m, const char *path, struct dl_err *e);

#endif
