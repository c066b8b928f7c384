/*
 * The folder of a store (dl-store(5)): names in it, its lock, and how its files
 * are written. Shared by those who make stores and those who open them.
 */
#ifndef DL_STATE_STORE_FOLDER_H
#define DL_STATE_STORE_FOLDER_H

#include "base/mem.h"
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

/* Writes the files of fragment p, at its version in h->saved, durably; files
 * gets that version and their hashes. error may be NULL: it has none. */
int dl_store_write_files(const char *folder, const struct dl_head *h,
	const struct dl_layout *l, uint32_t p, const float *values,
	const float *momentum, const float *error, struct dl_head_files *files,
	struct dl_err *e);

#endif
