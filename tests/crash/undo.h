/*
 * What a power cut would undo: changes that nobody has synced.
 *
 * Names belong to their folder and last once that folder was synced; data
 * belong to the file, whatever its name is by then, and last once the file was.
 * A file that loses a name is kept by a hard link in the folder ROOT.shadow,
 * and the synced content of one that is written to is kept in memory.
 * Folders that move are not followed.
 */
#ifndef TESTS_CRASH_UNDO_H
#define TESTS_CRASH_UNDO_H

enum undo_kind { UNDO_MADE, UNDO_GONE, UNDO_MADE_FOLDER, UNDO_GONE_FOLDER };
enum { UNDO_DATA = 1, UNDO_NAMES = 2 };

/* The call that changes come from now; changes of one call and one folder stay
 * or go together. */
void undo_begin(unsigned long call);

/* Before path loses its file: the name under which that is kept, or NULL when
 * there is none. Then one of the next two. */
char *undo_keep(const char *path);
/* The name path was made or is gone; kept is taken. */
void undo_name(enum undo_kind kind, const char *path, char *kept);
void undo_forget(char *kept); /* nothing happened */

/* Before the content of path changes, which may be /proc/self/fd/N. */
void undo_content(const char *path);

void undo_synced_file(int fd);
void undo_synced_folder(const char *path);

/* In a process that was forked: those changes are its parent's. */
void undo_forget_all(void);

/* Undoes it, latest first; with a seed, some of it. */
void undo_all(int what, unsigned long seed);

#endif
