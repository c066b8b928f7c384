/*
 * The note beside the saves of a trainer: which is the newest that is whole,
 * and whose it is. Whoever finds it later believes neither without looking.
 */
#ifndef CMD_LEARN_SAVE_NOTE_H
#define CMD_LEARN_SAVE_NOTE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "sync/sync.h"

struct save_note {
	char run[DL_NAME_MAX + 1], learner[DL_NAME_MAX + 1];
	char layout[DL_HASH_HEX];
	uint64_t epoch, clock;	    /* that it was made at */
	char file[DL_NAME_MAX + 1]; /* in the note's folder */
	uint64_t bytes;
	char hash[DL_HASH_HEX]; /* of its bytes */
};
#define SAVE_NOTE "note" /* its name in the folder */

/* Puts the file on the disk, fills in its bytes and hash, and replaces the note
 * durably. 65 when there is no such file, or 74; the note of before stays. */
int save_note_seal(
	struct save_note *note, const char *folder, struct dl_err *e);
/*
 * Finds a save that is fit to go on from: of own's run, learner and layout, of
 * no later epoch, and with the bytes that the note names. 66 when there is no
 * note, 65 when it is another's, damaged, or not whole, 75 when stop was set
 * meanwhile.
 */
int save_note_find(struct save_note *note, const struct save_note *own,
	const char *folder, const atomic_int *stop, struct dl_err *e);

#endif
