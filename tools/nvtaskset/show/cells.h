/* The cells of tables of programs, as text for people. */
#ifndef NVTASKSET_CELLS_H
#define NVTASKSET_CELLS_H

#include "rows.h"
#include "table.h"

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
	CELL_POLICY,
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

#endif
