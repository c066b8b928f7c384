/*
 * A checkpoint being read, entry by entry, by those who check, unpack or load
 * one. Nothing is taken on trust: what does not agree with the manifest, the
 * manifest with HEAD, or a record with the layout is refused (65), and no
 * size is believed before it is bounded.
 *
 *	rc = dl_checkpoint_open(&f, path, e);
 *	while (!rc && !(rc = dl_checkpoint_next(&f)))
 *		f.record, f.left bytes by dl_checkpoint_data, then
 *		rc = dl_checkpoint_whole(&f);
 *	dl_checkpoint_close(&f);
 */
#ifndef DL_STATE_CHECKPOINT_FILE_H
#define DL_STATE_CHECKPOINT_FILE_H

#include "base/input.h"
#include "state/checkpoint.h"
#include "state/head.h"
#include "state/manifest.h"

struct dl_checkpoint_file {
	/* The first three entries; verified by open. */
	struct dl_manifest manifest;
	struct dl_head head;
	struct dl_layout layout;
	struct dl_buf layout_text;
	/* The file that next came to: of fragment p, by its kind. */
	const struct dl_entry *entry;
	int kind; /* DL_STORE_GLOBAL, ... */
	uint32_t p;
	struct dl_buf record; /* the bytes of its header, which are checked */
	uint64_t left;	      /* of its data, the packed array */
	/* private from here */
	const char *path;
	int fd;
	struct dl_input in;
	struct archive *archive;
	unsigned char *block; /* of the tar */
	uint64_t after;	      /* bytes past the last entry */
	int input;	      /* code of the last read */
	size_t n;	      /* entries begun */
	struct dl_hash hash;
	struct dl_err *e;
};

/* 66, 74 or 65; e is for all calls until dl_checkpoint_close, which is to be
 * called whatever came. */
int dl_checkpoint_open(
	struct dl_checkpoint_file *f, const char *path, struct dl_err *e);
void dl_checkpoint_close(struct dl_checkpoint_file *f);

/* The next file of a fragment: DL_NO when all were there and nothing follows
 * them. */
int dl_checkpoint_next(struct dl_checkpoint_file *f);
/* The next n bytes of its data, at most f->left. */
int dl_checkpoint_data(struct dl_checkpoint_file *f, void *out, size_t n);
/* When all of it was taken: 65 when it is not what the manifest names. */
int dl_checkpoint_whole(struct dl_checkpoint_file *f);

/* What open found out. */
void dl_checkpoint_describe(
	const struct dl_checkpoint_file *f, struct dl_checkpoint_info *info);

#endif
