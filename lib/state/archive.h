/*
 * What checkpoints ask of libarchive, as a table: with the dozen libraries that
 * it stands on, dl-sync and dl-join would take twice as long to start, and few
 * of their uses read or write a checkpoint.
 */
#ifndef DL_STATE_ARCHIVE_H
#define DL_STATE_ARCHIVE_H

#include <archive.h>
#include <archive_entry.h>

#include "base/err.h"

#define DL_ARCHIVE(CALL)                                                       \
	CALL(entry_clear)                                                      \
	CALL(entry_filetype)                                                   \
	CALL(entry_free)                                                       \
	CALL(entry_hardlink)                                                   \
	CALL(entry_new)                                                        \
	CALL(entry_pathname)                                                   \
	CALL(entry_set_filetype)                                               \
	CALL(entry_set_mtime)                                                  \
	CALL(entry_set_pathname)                                               \
	CALL(entry_set_perm)                                                   \
	CALL(entry_set_size)                                                   \
	CALL(entry_size)                                                       \
	CALL(entry_size_is_set)                                                \
	CALL(entry_sparse_count)                                               \
	CALL(entry_symlink)                                                    \
	CALL(error_string)                                                     \
	CALL(read_data)                                                        \
	CALL(read_free)                                                        \
	CALL(read_new)                                                         \
	CALL(read_next_header)                                                 \
	CALL(read_open)                                                        \
	CALL(read_set_format_option)                                           \
	CALL(read_support_format_tar)                                          \
	CALL(set_error)                                                        \
	CALL(write_close)                                                      \
	CALL(write_data)                                                       \
	CALL(write_free)                                                       \
	CALL(write_header)                                                     \
	CALL(write_new)                                                        \
	CALL(write_open)                                                       \
	CALL(write_set_format_pax_restricted)

/* dl_archive.read_new is archive_read_new, once it is loaded. */
#define DL_ARCHIVE_POINTER(name) __typeof__(archive_##name) *name;
extern struct dl_archive {
	DL_ARCHIVE(DL_ARCHIVE_POINTER)
} dl_archive;
#undef DL_ARCHIVE_POINTER

/* From any thread, as often as one likes. 69 when it cannot be. */
int dl_archive_load(struct dl_err *e);

#endif
