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

/* The files of a fragment, and the folders that they are in; that of errors is
 * made with the first. */
enum { DL_STORE_GLOBAL, DL_STORE_MOMENTUM, DL_STORE_ERROR, DL_STORE_KINDS };
extern const char *const dl_store_kinds[DL_STORE_KINDS];

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

/*
 * Writes the files of a fragment by the threads of pool, durably, or, unless
 * out is NULL, to one a kind for the caller to commit, or to abort after a
 * failure; files gets its version and their hashes. data is an array a kind;
 * that of the error may be NULL: it has none.
 */
int dl_store_write_files(struct dl_pool *pool, const char *folder,
	const struct dl_store_label *label, const struct dl_layout *l,
	const float *const data[DL_STORE_KINDS],
	struct dl_output *const out[DL_STORE_KINDS],
	struct dl_head_files *files, struct dl_err *e);

#endif
