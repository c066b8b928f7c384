/*
 * What training keeps in files. A model is a folder of model.safetensors and
 * config.json, or the first alone. A state is one safetensors file with all
 * that training needs to go on bit for bit: parameters under their names, the
 * moments under exp_avg.NAME and exp_avg_sq.NAME, counters in the metadata.
 */
#ifndef DL_TRAIN_STORE_H
#define DL_TRAIN_STORE_H

#include "train/tensors.h"
#include "train/training.h"

/* Reads the configuration at `config`, or, when that is NULL, config.json in
 * the model's folder. */
int dl_store_read_config(struct dl_config *c, const char *config,
	const char *model, struct dl_err *e);

/* Fills values from a model that dl_model_open takes; nothing is changed
 * unless it has every parameter in the right shape. */
int dl_store_read_model(const struct dl_llama *m, const char *path,
	float *values, struct dl_err *e);

/*
 * Writes a model: to standard output for "-", to a file when path ends in
 * .safetensors, else to a folder, which is made, with its config.json.
 */
int dl_store_write_model(const struct dl_llama *m, const char *path,
	const float *values, struct dl_err *e);
/* 73 when there is a model at path already. */
int dl_store_refuse_model(const char *path, struct dl_err *e);
/* Could it be written there? Before long work; makes the folder. */
int dl_store_check_model(const char *path, struct dl_err *e);

/* Adds t's state to r. */
void dl_store_add_state(struct dl_tensors *r, const struct dl_training *t);
/* Saves t: durably, whole or not at all; or in scratch, in place. */
int dl_store_save(
	const struct dl_training *t, const char *path, struct dl_err *e);
int dl_store_save_scratch(
	const struct dl_training *t, const char *path, struct dl_err *e);

/* Restores t from either; unchanged when path does not fit its model. */
int dl_store_restore(struct dl_training *t, const char *path, struct dl_err *e);

#endif
