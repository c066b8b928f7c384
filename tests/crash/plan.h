/*
 * What the crash shim is asked to do, from its environment:
 *
 *	DL_CRASH_ROOT     the folder whose files it watches
 *	DL_CRASH_PROGRAM  only in the process of that name (default: in all)
 *	DL_CRASH_AT       the number of a call, from 1; 0 stands for all renames
 *	                  that lie, and for a process that dies when it has done
 *	                  all: it closes its output and stops (SIGSTOP) before
 *	DL_CRASH_DO       what happens at that call:
 *	    kill          the process dies, half way when it is a write
 *	    power         the power is cut: what was not synced is undone, then
 *	                  the process dies
 *	    data, names   the same, but only data or only names are undone
 *	    mixed         the same, but DL_CRASH_SEED draws what is undone
 *	    full          the disk is full from there on
 *	    ENOSPC, EIO   that call alone fails
 *	    lie           a rename works and answers ENOENT, as NFS does when
 *	                  its first answer got lost
 *	DL_CRASH_SKIP     syncs that do nothing: the number of one, from 1, or a
 *	                  pattern (fnmatch) for the path
 *	DL_CRASH_LOG      a file that gets a line a call: number, call, path
 *
 * Calls are numbered across threads, and only those that change something. A
 * process that is forked reads its own plan and counts from 1.
 */
#ifndef TESTS_CRASH_PLAN_H
#define TESTS_CRASH_PLAN_H

enum crash_call {
	CRASH_CREATE,
	CRASH_WRITE,
	CRASH_TRUNCATE,
	CRASH_RENAME,
	CRASH_LINK,
	CRASH_UNLINK,
	CRASH_MKDIR,
	CRASH_RMDIR,
	CRASH_SYNC
};

enum crash_verdict {
	CRASH_PASS,
	CRASH_HALF, /* a write: half of it, then crash_die */
	CRASH_PART, /* a write: half of it, and that is all */
	CRASH_FAIL, /* errno is set */
	CRASH_SKIP, /* a sync: nothing */
	CRASH_LIE   /* a rename: do it, answer ENOENT */
};

/* The folder watched, without a slash at the end; "" for none. */
const char *crash_root(void);
/*
 * A call on path begins: takes the lock and counts it, and does not return when
 * the process dies of it. crash_leave when the call is done.
 */
enum crash_verdict crash_enter(enum crash_call call, const char *path);
void crash_leave(void);
_Noreturn void crash_die(void);

#endif
