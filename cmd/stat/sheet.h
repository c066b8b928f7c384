/*
 * A table of figures, for programs or for eyes.
 */
#ifndef CMD_STAT_SHEET_H
#define CMD_STAT_SHEET_H

#include "state/stat.h"

struct column {
	const char *name;
	void (*put)(struct dl_buf *out, const struct dl_stat *s, size_t row,
		int exact);
};

struct sheet {
	const char *name;
	const struct column *column;
	size_t columns, words; /* so many of them first are words */
	size_t (*rows)(const struct dl_stat *s);
	/* Instead of columns: all of it, with tabs. */
	void (*whole)(struct dl_buf *out, const struct dl_stat *s);
};

extern const struct sheet sheet_members, sheet_fragments, sheet_history,
	sheet_timeline;

/* A line of names after "#", tabs between columns. */
void sheet_tsv(
	struct dl_buf *out, const struct sheet *sheet, const struct dl_stat *s);
/* Aligned. */
void sheet_text(
	struct dl_buf *out, const struct sheet *sheet, const struct dl_stat *s);

#endif
