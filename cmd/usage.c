#include "cmd/usage.h"

#include <stdio.h>
#include <string.h>

static const char first[] = "usage: ", others[] = "       ";
enum { MARGIN = sizeof first - 1 };

static const char *next(const char *line)
{
	return strchr(line, '\n') + 1;
}

static int begins(const char *line, const char *text)
{
	return !strncmp(line, text, strlen(text));
}

/* Is name the command of "PROGRAM COMMAND ..."? */
static int is_of(const char *text, const char *name)
{
	text += strcspn(text, " ") + 1;
	return begins(text, name) && strchr(" \n", text[strlen(name)]);
}

/* Is name in a heading? */
static int heads(const char *line, const char *name)
{
	for (; *line != '\n'; line += strspn(line, " ")) {
		if (begins(line, name) && strchr(",:", line[strlen(name)]))
			return 1;
		line += strcspn(line, " \n");
	}
	return 0;
}

/* Those of command; returns where the options begin. */
static const char *print_usages(const char *line, const char *command)
{
	const char *margin = first;
	int mine = 0;

	for (; begins(line, first) || begins(line, others); line = next(line)) {
		const char *text = line + MARGIN;

		if (*text != ' ')
			mine = is_of(text, command);
		if (!mine)
			continue;
		printf("%s%.*s", margin, (int)(next(line) - text), text);
		margin = others;
	}
	return line;
}

static void print_options(const char *line, const char *command)
{
	int mine = 1;

	for (; *line; line = next(line)) {
		if (*line != ' ')
			mine = heads(line, command) || heads(line, "all");
		else if (mine)
			printf("%.*s", (int)(next(line) - line), line);
	}
}

void usage_print(const char *usage, const char *command)
{
	if (command)
		print_options(print_usages(usage, command), command);
	else
		fputs(usage, stdout);
}
