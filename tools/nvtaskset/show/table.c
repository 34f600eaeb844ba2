#include "cells.h"

#include "terminal/text.h"

#include <string.h>

#define LAST_WIDTH_WANTED 12
#define LAST_WIDTH_MIN 8
#define CUT "..."

static const char *cell_at(const struct table *table, size_t row, unsigned int column, char text[CELL_MAX])
{
	return table->cell((const char *)table->items + row * table->item_size, table->columns[column].what, text);
}

/* --- which columns ------------------------------------------------------------------------------------------------ */

static size_t widest_cell(const struct table *table, unsigned int column)
{
	size_t widest = strlen(table->columns[column].heading), limit = table->columns[column].width_max;
	char text[CELL_MAX];

	for (size_t row = 0; row < table->item_count; row++) {
		size_t width = text_width(cell_at(table, row, column, text), table->utf8);

		widest = width > widest ? width : widest;
	}
	return limit > 0 && widest > limit ? limit : widest;
}

static size_t used_width(const struct table *table)
{
	size_t used = 0;

	for (unsigned int i = 0; i + 1 < table->column_count; i++)
		used += table->is_shown[i] ? table->widths[i] + 1 : 0;
	return used;
}

/* Hides the least needed column; false if all are needed. */
static bool hide_one(struct table *table)
{
	unsigned int worst = 0;

	for (unsigned int i = 1; i + 1 < table->column_count; i++) {
		if (table->is_shown[i] && table->columns[i].rank > table->columns[worst].rank)
			worst = i;
	}
	if (worst > 0)
		table->is_shown[worst] = false;
	return worst > 0;
}

static bool is_column_empty(const struct table *table, unsigned int column)
{
	char text[CELL_MAX];
	bool empty = true;

	for (size_t row = 0; row < table->item_count && empty; row++)
		empty = cell_at(table, row, column, text)[0] == '\0';
	return empty;
}

void table_fit(struct table *table, size_t width)
{
	unsigned int last = table->column_count - 1;

	for (unsigned int i = 0; i <= last; i++) {
		table->is_shown[i] = !table->columns[i].may_be_missing || !is_column_empty(table, i);
		table->widths[i] = i < last ? widest_cell(table, i) : 0;
	}
	while (used_width(table) + LAST_WIDTH_WANTED > width && hide_one(table))
		continue;
	size_t used = used_width(table);

	table->widths[last] = used + LAST_WIDTH_MIN <= width ? width - used : LAST_WIDTH_MIN;
}

/* --- printing ----------------------------------------------------------------------------------------------------- */

static void print_cut(const char *text, size_t width, bool utf8, FILE *page)
{
	size_t kept = width > strlen(CUT) ? width - strlen(CUT) : 0;
	size_t printed = text_print(page, text, kept, utf8);

	fprintf(page, "%.*s%*s", (int)(width - kept), CUT, (int)(kept - printed), "");
}

static void print_cell(const struct table *table, unsigned int column, const char *text, const char *const marks[2],
                       FILE *page)
{
	size_t width = text_width(text, table->utf8), room = table->widths[column];
	int padding = width < room ? (int)(room - width) : 0;
	bool is_number = table->columns[column].is_number, is_last = column + 1 == table->column_count;

	if (is_number)
		fprintf(page, "%*s", padding, "");
	fputs(marks[0], page);
	if (width <= room || is_last)
		text_print(page, text, room, table->utf8);
	else
		print_cut(text, room, table->utf8, page);
	fputs(marks[1], page);
	if (!is_last)
		fprintf(page, "%*s", is_number ? 1 : padding + 1, "");
}

static const char *const no_marks[] = {"", ""};

void table_print_headings(const struct table *table, unsigned int marked, const char *const marks[2], FILE *page)
{
	for (unsigned int i = 0; i < table->column_count; i++) {
		if (table->is_shown[i])
			print_cell(table, i, table->columns[i].heading, i == marked ? marks : no_marks, page);
	}
}

void table_print_row(const struct table *table, size_t row, FILE *page)
{
	char text[CELL_MAX];

	for (unsigned int i = 0; i < table->column_count; i++) {
		if (table->is_shown[i])
			print_cell(table, i, cell_at(table, row, i, text), no_marks, page);
	}
}
