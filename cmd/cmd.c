#include "cmd/cmd.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/mem.h"
#include "base/num.h"
#include "cmd/status.h"
#include "cmd/usage.h"
#include "config.h"

const char *cmd_name = "dl-tools";
int cmd_verbosity;
static const char *usage_text;
static const char *command; /* of the program, once it is known; or NULL */

/* A file must not get the number of a standard stream that is closed: what is
 * said would go into it. What takes its place cannot be used. */
static void hold_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
			open("/dev/null", fd ? O_RDONLY : O_WRONLY) != fd)
			_exit(DL_OSERR);
}

void cmd_init(const char *name, const char *usage)
{
	cmd_name = name;
	usage_text = usage;
	hold_streams();
	if (sodium_init() < 0)
		cmd_die(DL_OSERR, "libsodium does not start");
}

static void say(const char *fmt, va_list ap)
{
	char line[1024];

	/* One write a line, so that programs sharing a log do not mix. */
	vsnprintf(line, sizeof line, fmt, ap);
	cmd_status_end();
	fprintf(stderr, "%s: %s\n", cmd_name, line);
}

void cmd_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void cmd_note(const char *fmt, ...)
{
	va_list ap;

	if (cmd_verbosity < 0)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void cmd_debug(const char *fmt, ...)
{
	va_list ap;

	if (cmd_verbosity < 1)
		return;
	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

int cmd_fail(const struct dl_err *e)
{
	cmd_warn("%s", e->text);
	return e->code;
}

void cmd_die(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	exit(code);
}

/* What is wrong has been said, and would be lost before the whole usage. */
static void refer(void) __attribute__((noreturn));

static void refer(void)
{
	cmd_die(DL_USAGE, "try '%s%s%s -h'", cmd_name, command ? " " : "",
		command ? command : "");
}

void cmd_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	refer();
}

int cmd_flush(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	cmd_warn("standard output: cannot be written");
	return DL_IOERR;
}

void cmd_common_option(int opt)
{
	switch (opt) {
	case 'h':
		usage_print(usage_text, command);
		exit(cmd_flush());
	case 'V':
		printf("%s (dl-tools) %s\n", cmd_name, PACKAGE_VERSION);
		exit(cmd_flush());
	case 'q':
		cmd_verbosity = -1;
		break;
	case 'v':
		cmd_verbosity++;
		break;
	default: /* getopt_long has said what is wrong */
		refer();
	}
}

int cmd_dispatch(
	int argc, char **argv, const struct cmd_command *commands, size_t n)
{
	static const struct option options[] = {CMD_LONG, {NULL, 0, NULL, 0}};
	int opt, at;

	while ((opt = getopt_long(argc, argv, "+" CMD_SHORT, options, NULL)) !=
		-1)
		cmd_common_option(opt);
	if (optind == argc)
		cmd_usage("no command");
	at = optind;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(argv[at], commands[i].name))
			continue;
		command = commands[i].name;
		argv[at] = argv[0]; /* getopt's messages begin with it */
		optind = 0;	    /* begin anew, options anywhere */
		return commands[i].run(argc - at, argv + at);
	}
	cmd_usage("%s: no such command", argv[at]);
}

uint64_t cmd_u64(
	const char *option, const char *arg, uint64_t min, uint64_t max)
{
	uint64_t v;

	if (dl_parse_u64(arg, min, max, &v))
		cmd_usage("%s %s: not a whole number from %llu to %llu", option,
			arg, (unsigned long long)min, (unsigned long long)max);
	return v;
}

int cmd_zstd(const char *arg)
{
	return arg ? (int)cmd_u64("-z", arg, 1, 19) : 3;
}

double cmd_double(const char *option, const char *arg, double min, double max)
{
	double v;

	if (dl_parse_double(arg, min, max, &v))
		cmd_usage("%s %s: not a number from %g to %g", option, arg, min,
			max);
	return v;
}

uint64_t cmd_size(const char *option, const char *arg)
{
	uint64_t v;

	if (dl_parse_size(arg, &v))
		cmd_usage("%s %s: not a size such as 64Ki or 5G", option, arg);
	return v;
}

uint64_t cmd_rate(const char *option, const char *arg)
{
	uint64_t v;

	if (dl_parse_rate(arg, &v))
		cmd_usage("%s %s: not a rate such as 10M or 100Mbit", option,
			arg);
	return v;
}

int64_t cmd_duration(const char *option, const char *arg)
{
	int64_t v;

	if (dl_parse_duration(arg, &v))
		cmd_usage("%s %s: not a duration such as 250ms or 20s", option,
			arg);
	return v;
}

int64_t cmd_period(const char *option, const char *arg)
{
	int64_t v = cmd_duration(option, arg);

	if (!v)
		cmd_usage("%s %s: takes no time", option, arg);
	return v;
}

void cmd_every(
	const char *option, const char *arg, uint64_t *steps, int64_t *ns)
{
	*steps = 0;
	*ns = 0;
	if (strspn(arg, "0123456789") == strlen(arg))
		*steps = cmd_u64(option, arg, 1, UINT64_MAX);
	else
		*ns = cmd_period(option, arg);
}

/* The name of a file, also of one that is not there yet, by which it is known
 * whatever leads to it; NULL when its folder is not there. */
static char *place_of(const char *path)
{
	const char *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	char *folder, *real = realpath(path, NULL), *place;

	if (real)
		return real;
	folder = slash ? dl_strndup(path, (size_t)(name - path))
		       : dl_strdup(".");
	real = realpath(folder, NULL);
	place = real ? dl_sprintf("%s/%s", real, name) : NULL;
	free(folder);
	free(real);
	return place;
}

static int is_file(const char *path)
{
	struct stat st;

	return path && strcmp(path, "-") != 0 &&
	       (stat(path, &st) || S_ISREG(st.st_mode));
}

void cmd_apart(const char *option, const char *path, const char *option2,
	const char *path2)
{
	char *place, *place2;

	if (!is_file(path) || !is_file(path2))
		return;
	place = place_of(path);
	place2 = place_of(path2);
	if (place && place2 && !strcmp(place, place2))
		cmd_usage("%s and %s: both are %s", option, option2, path);
	free(place);
	free(place2);
}
