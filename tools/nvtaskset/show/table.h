/*
 * A table that fits a width: which columns it has, and how wide they are. The last column, a text of any length, gets what
 * is left.
 */
#ifndef NVTASKSET_TABLE_H
#define NVTASKSET_TABLE_H

#include "gpu/tpcset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define COLUMNS_MAX 20
#define CELL_MAX (TPCSET_TEXT + 2)

struct column {
	const char *heading;
	unsigned int what;      /* its cells tell */
	bool is_number;         /* on the right */
	unsigned int rank;      /* where there is no room for all, the column with the highest rank goes first; 0: it stays */
	unsigned int width_max; /* longer cells are cut; 0: none is */
	bool may_be_missing;    /* where all of its cells are "" */
};

struct table {
	const struct column *columns;
	unsigned int column_count; /* with the last one */
	const void *items;         /* one for each row of the table */
	size_t item_size, item_count;
	/* Returns the text of a cell: in `text`, or a text that stays. */
	const char *(*cell)(const void *item, unsigned int what, char text[CELL_MAX]);
	bool utf8;
	/* Filled in by table_fit. */
	bool is_shown[COLUMNS_MAX];
	size_t widths[COLUMNS_MAX];
};

/* Chooses columns for a page of this width. */
void table_fit(struct table *table, size_t width);

/* Prints the headings, or a row, without the end of the line. It may be longer than the page where there is no room for a
 * few characters of the last column. `marks` are printed around the heading of the column `marked`, if there is one. */
void table_print_headings(const struct table *table, unsigned int marked, const char *const marks[2], FILE *page);
void table_print_row(const struct table *table, size_t row, FILE *page);

#endif
