#include "cmd/stat/sheet.h"

#include <stdlib.h>
#include <string.h>

void sheet_tsv(
	struct dl_buf *out, const struct sheet *sheet, const struct dl_stat *s)
{
	size_t rows = sheet->rows ? sheet->rows(s) : 0;

	if (sheet->whole) {
		sheet->whole(out, s);
		return;
	}
	for (size_t c = 0; c < sheet->columns; c++)
		dl_buf_printf(
			out, "%s%s", c ? "\t" : "# ", sheet->column[c].name);
	dl_buf_byte(out, '\n');
	for (size_t i = 0; i < rows; i++)
		for (size_t c = 0; c < sheet->columns; c++) {
			sheet->column[c].put(out, s, i, 1);
			dl_buf_byte(out, c + 1 < sheet->columns ? '\t' : '\n');
		}
}

/* All cells, each with its NUL, line by line; the first line is names. */
static size_t put_cells(struct dl_buf *cells, const struct sheet *sheet,
	const struct dl_stat *s)
{
	size_t rows = sheet->rows(s);

	for (size_t c = 0; c < sheet->columns; c++) {
		dl_buf_str(cells, sheet->column[c].name);
		dl_buf_byte(cells, '\0');
	}
	for (size_t i = 0; i < rows; i++)
		for (size_t c = 0; c < sheet->columns; c++) {
			sheet->column[c].put(cells, s, i, 0);
			dl_buf_byte(cells, '\0');
		}
	return (rows + 1) * sheet->columns;
}

/* Words to the left, numbers to the right, as wide as they must be. */
void sheet_text(
	struct dl_buf *out, const struct sheet *sheet, const struct dl_stat *s)
{
	struct dl_buf cells = DL_BUF_INIT;
	const char *cell;
	size_t n, c;
	int *width;

	if (sheet->whole) {
		sheet->whole(out, s);
		return;
	}
	n = put_cells(&cells, sheet, s);
	width = dl_alloc_array(sheet->columns, sizeof *width);
	cell = (const char *)cells.data;
	for (size_t i = 0; i < n; i++, cell += strlen(cell) + 1)
		if ((int)strlen(cell) > width[i % sheet->columns])
			width[i % sheet->columns] = (int)strlen(cell);
	cell = (const char *)cells.data;
	for (size_t i = 0; i < n; i++, cell += strlen(cell) + 1) {
		c = i % sheet->columns;
		dl_buf_printf(out, "%*s%s",
			c < sheet->words ? -width[c] : width[c], cell,
			c + 1 < sheet->columns ? "  " : "\n");
	}
	free(width);
	dl_buf_free(&cells);
}
