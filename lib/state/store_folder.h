/*
 * The folder of a store (dl-store(5)): names in it, its lock, and how its files
 * are written. Shared by those who make stores and those who open them.
 */
#ifndef DL_STATE_STORE_FOLDER_H
#define DL_STATE_STORE_FOLDER_H

#include "base/mem.h"
#include "base/output.h"
#include "base/pool.h"
#include "state/head.h"

/* Names, for the caller to free: FOLDER/NAME, P.E.N, FOLDER/KIND/P.E.N. */
char *dl_store_path(const char *folder, const char *name);
char *dl_store_file_name(uint32_t p, struct dl_version made);
char *dl_store_file_path(
	const char *folder, int kind, uint32_t p, struct dl_version made);

/* The lock that makes an owner; it lasts until *fd is closed. 75 when another
 * process has it. */
int dl_store_lock(const char *folder, int *fd, struct dl_err *e);

/* Makes the folders of a new store and locks it, as above: 73 when it has a
 * HEAD already. */
int dl_store_begin(const char *folder, int *fd, struct dl_err *e);

/* Writes the text of its layout, durably. */
int dl_store_write_layout(
	const char *folder, const struct dl_buf *text, struct dl_err *e);

/* Replaces HEAD by text, durably. */
int dl_store_write_head(
	const char *folder, const struct dl_buf *text, struct dl_err *e);

/* What the files of a fragment say of it, beside its layout. */
struct dl_store_label {
	const char *run;
	uint32_t p;
	struct dl_version version;
	uint64_t step;
};

/* What is in them. */
struct dl_store_content {
	/* A packed array a kind; that of the error may be NULL: it has none. */
	const float *data[DL_STORE_KINDS];
	/* NULL: they are made durable. Or else the caller commits them, or
	 * aborts after a failure. */
	struct dl_output *out[DL_STORE_KINDS];
	int unhashed; /* their hashes are not wanted yet */
};

/* Writes the files of a fragment by the threads of pool; files gets its version
 * and their hashes. */
int dl_store_write_files(struct dl_pool *pool, const char *folder,
	const struct dl_store_label *label, const struct dl_layout *l,
	const struct dl_store_content *content, struct dl_head_files *files,
	struct dl_err *e);

#endif
