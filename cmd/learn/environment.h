/*
 * What a trainer finds in its environment beside DL_TRAINER (dl-trainer(7)).
 */
#ifndef CMD_LEARN_ENVIRONMENT_H
#define CMD_LEARN_ENVIRONMENT_H

#include <stdint.h>

#include "tensor/layout.h"

enum { ENVIRONMENT = 5 }; /* variables */

struct environment {
	const char *name;
	uint64_t slot, seed;
	const char *run;
	const char *layout; /* its file */
};

/* Makes the variables, to be freed by environment_free, and the list of them
 * that ends with NULL. */
void environment_set(char *variable[ENVIRONMENT],
	const char *list[ENVIRONMENT + 1], const struct environment *v);
void environment_free(char *variable[ENVIRONMENT]);

/* Writes the file of the layout. */
int environment_layout(
	const struct dl_layout *l, const char *path, struct dl_err *e);

#endif
