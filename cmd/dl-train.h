/*
 * The commands of dl-train, a file each; argv[0] is the command's name.
 */
#ifndef CMD_DL_TRAIN_H
#define CMD_DL_TRAIN_H

#include "train/training.h"

int train_init(int argc, char **argv);
int train_run(int argc, char **argv);
int train_eval(int argc, char **argv);
int train_sample(int argc, char **argv);

/* What run and eval share: a model, data and the room to use them. */
struct train_job {
	struct dl_llama m;
	struct dl_corpus corpus;
	struct dl_training training;
};

/*
 * Reads the configuration (config, or the model's own when NULL), the data
 * and, on rank 0, the values of the model. What goes wrong on one rank does on
 * all.
 */
int train_job_open(struct train_job *j, const char *model, const char *config,
	char *const *data, size_t n, double held_out,
	const struct dl_training_options *o, struct dl_err *e);
void train_job_close(struct train_job *j);

#endif
