/*
 * Errors and exit codes.
 *
 * A function in lib that can fail takes a struct dl_err and returns 0 or an
 * exit code; it never prints and never exits. The caller adds the place as the
 * error travels up; the program prints one line and leaves with the code.
 */
#ifndef DL_BASE_ERR_H
#define DL_BASE_ERR_H

#include <stdarg.h>

/* The exit status of every program (sysexits); dl-tools(7) has the table. */
enum dl_code {
	DL_OK = 0,
	DL_NO = 1,           /* the answer is no */
	DL_USAGE = 64,       /* the command line is wrong */
	DL_DATA = 65,        /* bad data */
	DL_NOINPUT = 66,     /* no such input */
	DL_UNAVAILABLE = 69, /* peer unreachable */
	DL_SOFTWARE = 70,    /* a fault of ours */
	DL_OSERR = 71,       /* out of memory, descriptors, processes */
	DL_CANTCREAT = 73,   /* cannot create output */
	DL_IOERR = 74,       /* reading or writing failed */
	DL_TEMPFAIL = 75,    /* try again later: no quorum yet */
	DL_PROTOCOL = 76,    /* the peer broke the protocol */
	DL_NOPERM = 77,      /* not authorised */
};

struct dl_err {
	int code;       /* an enum dl_code */
	char text[480]; /* "place: fact", no newline; scrubbed of controls */
};

/* Sets e (which may be NULL) and returns code. */
int dl_fail(struct dl_err *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As dl_fail, and appends ": " and the system's reason for errno. */
int dl_fail_sys(struct dl_err *e, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "place: " before the text of e; returns e's code. */
int dl_at(struct dl_err *e, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Copies n bytes of a foreign string into out as something safe to print:
 * controls, quotes, backslashes and bytes above 126 become \xNN, and what
 * does not fit in size is cut with "...". Returns out.
 */
char *dl_scrub(char *out, unsigned long size, const char *s, unsigned long n);

#endif
