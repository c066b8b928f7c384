#include "cmd/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cmd_table_option(struct cmd_table *t, int opt)
{
	if (opt == CMD_TABLE_FORMATS)
		t->format = CMD_TSV;
	else if (opt == CMD_TABLE_JSON)
		t->format = CMD_JSON;
	else
		return 0;
	return 1;
}

/* In JSON a word stands in quotes; those of tables hold none. */
void cmd_table_word(struct cmd_table *t, const char *word)
{
	int quoted = t->format == CMD_JSON;

	dl_buf_printf(&t->cells, quoted ? "\"%s\"" : "%s", word);
	dl_buf_byte(&t->cells, '\0');
	t->n++;
}

void cmd_table_number(struct cmd_table *t, const char *fmt, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	dl_buf_str(&t->cells, text);
	dl_buf_byte(&t->cells, '\0');
	t->n++;
}

void cmd_table_none(struct cmd_table *t)
{
	cmd_table_number(t, "%s", t->format == CMD_JSON ? "null" : "-");
}

static size_t count_columns(const struct cmd_table *t)
{
	size_t n = 0;

	while (t->column[n])
		n++;
	return n;
}

static void print_tsv(
	char *const *cell, size_t rows, size_t columns, const char *const *name)
{
	for (size_t c = 0; c < columns; c++)
		printf("%s%s", c ? "\t" : "# ", name[c]);
	for (size_t i = 0; i < rows * columns; i++)
		printf("%c%s", i % columns ? '\t' : '\n', cell[i]);
	putchar('\n');
}

static void print_aligned(
	char *const *cell, size_t rows, size_t columns, const char *const *name)
{
	int *width = dl_alloc_array(columns, sizeof *width);

	for (size_t c = 0; c < columns; c++)
		width[c] = (int)strlen(name[c]);
	for (size_t i = 0; i < rows * columns; i++)
		if ((int)strlen(cell[i]) > width[i % columns])
			width[i % columns] = (int)strlen(cell[i]);
	for (size_t c = 0; c < columns; c++)
		printf("%s%*s", c ? "  " : "", width[c], name[c]);
	for (size_t i = 0; i < rows * columns; i++)
		printf("%s%*s", i % columns ? "  " : "\n", width[i % columns],
			cell[i]);
	putchar('\n');
	free(width);
}

static void print_json(
	char *const *cell, size_t rows, size_t columns, const char *const *name)
{
	putchar('[');
	for (size_t i = 0; i < rows * columns; i++)
		printf("%s\"%s\": %s",
			i % columns ? ", "
			: i	    ? "},\n {"
				    : "\n {",
			name[i % columns], cell[i]);
	puts(rows ? "}\n]" : "]");
}

void cmd_table_print(struct cmd_table *t)
{
	size_t columns = count_columns(t), rows = t->n / columns;
	char **cell = dl_alloc_array(t->n, sizeof *cell);
	char *at = (char *)t->cells.data;

	for (size_t i = 0; i < t->n; i++) {
		cell[i] = at;
		at += strlen(at) + 1;
	}
	if (t->format == CMD_JSON)
		print_json(cell, rows, columns, t->column);
	else if (t->format == CMD_PLAIN && isatty(STDOUT_FILENO))
		print_aligned(cell, rows, columns, t->column);
	else
		print_tsv(cell, rows, columns, t->column);
	free(cell);
	dl_buf_free(&t->cells);
	t->n = 0;
}
