/*
 * dl-key: make and show the keys that learners and syncers use.
 */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "base/file.h"
#include "cmd/cmd.h"
#include "link/key.h"

static const char usage[] =
	"usage: dl-key gen [-o FILE]\n"
	"       dl-key pub [FILE]\n"
	"  -o, --output FILE    a new file, instead of standard output\n"
	"  -h, --help  -V, --version  -q, --quiet  -v, --verbose\n";

/* The one command line of both: -o when there is an output to name. */
static void parse(int argc, char **argv, const char **output)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'}, CMD_LONG, {0}};
	const struct option *known = output ? options : options + 1;
	int opt;

	while ((opt = getopt_long(argc, argv,
			output ? "o:" CMD_SHORT : CMD_SHORT, known, NULL)) !=
		-1) {
		if (opt == 'o')
			*output = optarg;
		else
			cmd_common_option(opt);
	}
}

static int write_line(const char *line, size_t n, struct dl_err *e)
{
	if (dl_write_full(STDOUT_FILENO, line, n))
		return dl_fail_sys(e, DL_IOERR, "standard output");
	return 0;
}

/* What the shell made for us has the mode that the umask left. */
static void warn_of_readers(void)
{
	struct stat st;

	if (!fstat(STDOUT_FILENO, &st) && S_ISREG(st.st_mode) &&
		(st.st_mode & (S_IRWXG | S_IRWXO)))
		cmd_warn("standard output: mode %04o lets others at the key, "
			 "which will be refused: chmod 600, or use -o",
			(unsigned)(st.st_mode & 07777));
}

static int print_secret(
	const struct dl_key *k, const char *output, struct dl_err *e)
{
	char line[DL_KEY_TEXT + 1];
	int rc;

	dl_key_print(line, k->secret);
	line[DL_KEY_TEXT] = '\n';
	if (strcmp(output, "-")) {
		rc = dl_write_new(output, line, sizeof line, e);
	} else {
		warn_of_readers();
		rc = write_line(line, sizeof line, e);
	}
	sodium_memzero(line, sizeof line);
	return rc;
}

static int gen(int argc, char **argv)
{
	const char *output = "-";
	struct dl_key *k;
	struct dl_err e;
	int rc;

	parse(argc, argv, &output);
	if (optind < argc)
		cmd_usage("gen: takes no operand, but has %s", argv[optind]);
	if (!strcmp(output, "-") && isatty(STDOUT_FILENO))
		cmd_usage("gen: standard output is a terminal, which would "
			  "show the key");
	rc = dl_key_new(&k, &e);
	if (!rc)
		rc = print_secret(k, output, &e);
	dl_key_free(k);
	return rc ? cmd_fail(&e) : 0;
}

static int pub(int argc, char **argv)
{
	char line[DL_KEY_TEXT + 1];
	struct dl_key *k;
	struct dl_err e;
	int rc;

	parse(argc, argv, NULL);
	if (argc - optind > 1)
		cmd_usage("pub: takes one file, but has %s as well",
			argv[optind + 1]);
	rc = dl_key_read(&k, optind < argc ? argv[optind] : "-", &e);
	if (!rc) {
		dl_key_print(line, k->public);
		line[DL_KEY_TEXT] = '\n';
		rc = write_line(line, sizeof line, &e);
	}
	dl_key_free(k);
	return rc ? cmd_fail(&e) : 0;
}

int main(int argc, char **argv)
{
	static const struct cmd_command commands[] = {
		{"gen", gen}, {"pub", pub}};

	cmd_init("dl-key", usage);
	return cmd_dispatch(
		argc, argv, commands, sizeof commands / sizeof *commands);
}
