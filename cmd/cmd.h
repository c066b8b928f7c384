/*
 * What every program's main shares: options, usage, version, messages. Only
 * programs talk; lib returns.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

#include <getopt.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

extern const char *cmd_name; /* "dl-frag" */
extern int cmd_verbosity;    /* -1 with -q, 0, 1 with -v, 2 with -vv */

/* Sets the name and initialises libsodium. usage is the whole text that -h
 * prints: lines "usage: ..." as in the page's SYNOPSIS, then the options; a
 * command's -h prints its part (cmd/usage.h). */
void cmd_init(const char *name, const char *usage);

/* One line "dl-prog: ..." to stderr. */
void cmd_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void cmd_note(const char *fmt, ...) /* silent with -q */
	__attribute__((format(printf, 1, 2)));
void cmd_debug(const char *fmt, ...) /* only with -v */
	__attribute__((format(printf, 1, 2)));

/* What ends standard output: 0, or 74 after a message when not all of it could
 * be written. */
int cmd_flush(void);

/* Prints e and returns its code, for `return cmd_fail(&e)` in main. */
int cmd_fail(const struct dl_err *e);

/* A message, then exit. */
void cmd_die(int code, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

/* "dl-prog: ...", where the usage is to be had, exit 64. */
void cmd_usage(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/*
 * Handles what all programs have in common: -h, -V, -q, -v, and unknown
 * options ('?' and ':'). Call it for every option getopt_long returns that the
 * program does not know. short options every program adds: CMD_SHORT.
 */
#define CMD_SHORT "hVqv"
#define CMD_LONG \
	{"help", no_argument, NULL, 'h'}, \
	{"version", no_argument, NULL, 'V'}, \
	{"quiet", no_argument, NULL, 'q'}, \
	{"verbose", no_argument, NULL, 'v'}
void cmd_common_option(int opt);

/* One of a program's commands; argv[0] is the program's name. */
struct cmd_command {
	const char *name;
	int (*run)(int argc, char **argv);
};
/* main of a program with commands: options that all have in common, then the
 * command, which reads what follows with getopt from the start. */
int cmd_dispatch(
	int argc, char **argv, const struct cmd_command *commands, size_t n);

/* Option arguments; exit 64 naming the option when bad. */
uint64_t cmd_u64(const char *option, const char *arg, uint64_t min,
	uint64_t max);
double cmd_double(const char *option, const char *arg, double min, double max);
uint64_t cmd_size(const char *option, const char *arg);
uint64_t cmd_rate(const char *option, const char *arg); /* bytes a second */
int64_t cmd_duration(const char *option, const char *arg);
int64_t cmd_period(const char *option, const char *arg); /* above 0 */
/* How often: steps when it is a bare number, else a period; the other is 0. */
void cmd_every(
	const char *option, const char *arg, uint64_t *steps, int64_t *ns);

/* Exit 64 when two options would write one file; a path may be NULL, and "-" is
 * no file. */
void cmd_apart(const char *option, const char *path, const char *option2,
	const char *path2);

/* -z[LEVEL], which compresses output (dl_output_compress). */
#define CMD_ZSTD "z::"
#define CMD_ZSTD_LONG {"zstd", optional_argument, NULL, 'z'}
int cmd_zstd(const char *arg); /* the level; arg may be NULL */

#endif
