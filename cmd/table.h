/*
 * Tables on standard output: with tabs for pipes, aligned for a terminal, or as
 * JSON, an object a row.
 */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include <stddef.h>

#include "base/mem.h"

enum cmd_format { CMD_PLAIN, CMD_TSV, CMD_JSON };

enum { CMD_TABLE_FORMATS = 0x7ab0, CMD_TABLE_JSON };
#define CMD_TABLE_LONG                                                         \
	{"tsv", no_argument, NULL, CMD_TABLE_FORMATS},                         \
	{                                                                      \
		"json", no_argument, NULL, CMD_TABLE_JSON                      \
	}

struct cmd_table {
	const char *const *column; /* names, NULL at the end */
	enum cmd_format format;	   /* CMD_PLAIN: aligned on a terminal, else
				    * as TSV */
	/* private */
	struct dl_buf cells; /* of all rows, each with its NUL */
	size_t n;
};

/* Takes an option of CMD_TABLE_LONG: 1, or 0 when it is none of these. */
int cmd_table_option(struct cmd_table *t, int opt);

/* The next cell, row after row. */
void cmd_table_word(struct cmd_table *t, const char *word);
void cmd_table_number(struct cmd_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void cmd_table_none(struct cmd_table *t); /* "-", in JSON null */

/* Prints the table, which is released. */
void cmd_table_print(struct cmd_table *t);

#endif
