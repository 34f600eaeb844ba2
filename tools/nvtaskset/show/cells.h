/* The cells of tables of programs, as text for people. */
#pragma once

#include "gpu/tpcset.h"
#include "rows.h"

#include <stdio.h>

/* --- table.c ------------------------------------------------------------------------------------------------------ */

/*
 * A table that fits a width: its columns, and their widths. The last column, a text of any length, gets the rest.
 */

#define COLUMNS_MAX 20
#define CELL_MAX (TPCSET_TEXT + 2)

struct column {
	const char *heading;
	unsigned int what;      /* for `cell`: the content */
	bool is_number;         /* aligned to the right */
	unsigned int rank;      /* the columns with the highest rank are hidden first; 0: never */
	unsigned int width_max; /* longer cells are cut; 0: no cell is cut */
	bool may_be_missing;    /* hidden if all cells are "" */
};

struct table {
	const struct column *columns;
	unsigned int column_count; /* with the last column */
	const void *items;         /* an item for each row */
	size_t item_size, item_count;
	/* Returns the text of a cell: `text`, or a static text. */
	const char *(*cell)(const void *item, unsigned int what, char text[CELL_MAX]);
	bool utf8;
	/* Filled in by table_fit. */
	bool is_shown[COLUMNS_MAX];
	size_t widths[COLUMNS_MAX];
};

/* Chooses columns for a page of this width. */
void table_fit(struct table *table, size_t width);

/* Prints the headings, or a row, without the end of the line. Longer than the page if the last column has no room for a
 * few characters. `marks` are printed around the heading of the column `marked`, if there is one. */
void table_print_headings(const struct table *table, unsigned int marked, const char *const marks[2], FILE *page);
void table_print_row(const struct table *table, size_t row, FILE *page);

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* The content of a cell. Any other number of a row is CELL_NUMBER + its enum number. */
enum cell {
	CELL_PID,
	CELL_USER,
	CELL_GPU,
	CELL_TPCS,
	CELL_GPCS,
	CELL_QUOTA, /* the given time; "": none; in brackets: not in force */
	CELL_PRIORITY,
	CELL_WEIGHT,
	CELL_LENDING,
	CELL_BUSY, /* in percent */
	CELL_TPC,
	CELL_RATE,
	CELL_WAITING, /* in flight, shortened */
	CELL_TIME,
	CELL_MEMORY, /* in use, and the limit: "300M/2G"; "": nothing to show */
	CELL_WORKLOAD, /* pod and container, or job; "": none */
	CELL_COMMAND,
	CELL_NUMBER
};

/* The cell of a struct row, for struct table. */
const char *cell_of_row(const void *row, unsigned int cell, char text[CELL_MAX]);

/* The number by which rows are sorted. Not known for a text. */
struct reading cell_number(const struct row *row, enum cell cell);

const char *cell_percent(struct reading share, char text[CELL_MAX]);

const char *cell_whole(struct reading number, char text[CELL_MAX]);

/* "1.2ms". */
const char *cell_duration(struct reading nanoseconds, char text[CELL_MAX]);

/* Large numbers are shortened. `decimals` is 0 for whole things. */
const char *cell_count(struct reading count, int decimals, char text[CELL_MAX]);
