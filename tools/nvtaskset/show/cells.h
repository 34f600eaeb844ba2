/* The cells of tables of programs, as text for people. */
#ifndef NVTASKSET_CELLS_H
#define NVTASKSET_CELLS_H

#include "rows.h"
#include "table.h"

/* What a cell tells of a row. Others are numbers as they are: CELL_NUMBER and an enum number. */
enum cell {
	CELL_PID,
	CELL_USER,
	CELL_GPU,
	CELL_TPCS,
	CELL_GPCS,
	CELL_QUOTA, /* what it was given of the time: "" where it was not; in brackets where it is not in force */
	CELL_PRIORITY,
	CELL_WEIGHT,
	CELL_POLICY,
	CELL_LENDING,
	CELL_BUSY, /* in percent */
	CELL_TPC,
	CELL_RATE,
	CELL_WAITING, /* in flight, shortened */
	CELL_TIME,
	CELL_MEMORY, /* in use, and the limit: "300M/2G"; "" where there is nothing to tell */
	CELL_WORKLOAD, /* its pod and container, or its job: "" where it has none */
	CELL_COMMAND,
	CELL_NUMBER
};

/* The cell of a struct row: see struct table. */
const char *cell_of_row(const void *row, unsigned int cell, char text[CELL_MAX]);

/* What rows are sorted by. Not known of a text. */
struct reading cell_number(const struct row *row, enum cell cell);

const char *cell_percent(struct reading share, char text[CELL_MAX]);

const char *cell_whole(struct reading number, char text[CELL_MAX]);

/* "1.2ms". */
const char *cell_duration(struct reading nanoseconds, char text[CELL_MAX]);

/* Shortened if it is large. Of things that come one by one, `decimals` is 0. */
const char *cell_count(struct reading count, int decimals, char text[CELL_MAX]);

#endif
