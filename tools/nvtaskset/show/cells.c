#include "cells.h"

#include "cli/gpcs.h"
#include "cli/time_given.h"

/* --- numbers ------------------------------------------------------------------------------------------------------ */

const char *cell_percent(struct reading share, char text[CELL_MAX])
{
	snprintf(text, CELL_MAX, "%.1f", share.value * 100);
	return share.is_known ? text : "-";
}

const char *cell_whole(struct reading number, char text[CELL_MAX])
{
	snprintf(text, CELL_MAX, "%.0f", number.value);
	return number.is_known ? text : "-";
}

const char *cell_count(struct reading count, int decimals, char text[CELL_MAX])
{
	if (!count.is_known)
		return "-";
	if (count.value >= 1e7)
		snprintf(text, CELL_MAX, "%.4gM", count.value / 1e6);
	else
		snprintf(text, CELL_MAX, "%.*f", count.value < 10 ? decimals : 0, count.value);
	return text;
}

const char *cell_duration(struct reading nanoseconds, char text[CELL_MAX])
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	double value = nanoseconds.value;
	size_t unit = 0;

	for (; value >= 1000 && unit < 3; unit++)
		value /= 1000;
	snprintf(text, CELL_MAX, "%.*f%s", unit > 0 ? 1 : 0, value, units[unit]);
	return nanoseconds.is_known ? text : "-";
}

static const char *format_busy(const struct row *row, char text[CELL_MAX])
{
	const char *mark = row->is_presence ? "p" : row->shares ? "*" : "";
	struct reading busy = row->numbers[NUMBER_BUSY];

	snprintf(text, CELL_MAX, "%.1f%s", busy.value * 100, mark);
	return busy.is_known ? text : "-";
}

/* As in top: minutes, or hours. */
static const char *format_time(struct reading time, char text[CELL_MAX])
{
	unsigned long seconds = (unsigned long)time.value, minutes = seconds / 60;

	if (!time.is_known)
		return "-";
	if (seconds < 3600)
		snprintf(text, CELL_MAX, "%lu:%05.2f", minutes, time.value - (double)minutes * 60);
	else
		snprintf(text, CELL_MAX, "%lu:%02lu:%02lu", minutes / 60, minutes % 60, seconds % 60);
	return text;
}

/* The limit may be for several programs together. */
static const char *format_memory(const struct row *row, char text[CELL_MAX])
{
	struct reading used = row->numbers[NUMBER_MEMORY], limit = row->numbers[NUMBER_MEMORY_LIMIT];
	char amount[MEMORY_TEXT], most[MEMORY_TEXT];

	if (!used.is_known || (used.value == 0 && !limit.is_known))
		return "";
	snprintf(text, CELL_MAX, "%s%s%s", setting_format_memory((uint64_t)used.value, amount),
	         limit.is_known ? "/" : "",
	         limit.is_known ? setting_format_memory((uint64_t)limit.value, most) : "");
	return text;
}

/* --- partition and time ------------------------------------------------------------------------------------------- */

static const char *format_gpcs(const struct row *row, char text[CELL_MAX])
{
	struct gpcs gpcs = row->topology && row->set ? gpcs_of(row->topology, row->set) : (struct gpcs){.whole = {{0}}};

	return gpcs_format(&gpcs, text)[0] != '\0' ? text : "-";
}

static const char *format_given(const struct process *process, enum setting setting, char text[CELL_MAX])
{
	char value[SETTING_TEXT];

	if (!setting_format(&process->revision, setting, SETTING_FOR_PEOPLE, value))
		return "";
	snprintf(text, CELL_MAX, time_holds(&process->revision, process->time.state, setting) ? "%s" : "(%s)", value);
	return text;
}

/* "lends 8, waited 1.2ms, borrows 0": TPCs now, and the longest wait of late. */
static const char *format_lending(const struct row *row, char text[CELL_MAX])
{
	const struct process *process = row->process;
	bool lends = segment_lends_us(&process->revision.lending) > 0,
	     borrows = segment_borrows(&process->revision.lending);
	struct reading waited = row->numbers[NUMBER_WAITED];
	char duration[CELL_MAX];
	int length = lends ? snprintf(text, CELL_MAX, "lends %u", tpcset_count(&process->lent)) : 0;

	cell_duration(reading_of(waited.value * 1e9), duration);
	if (waited.value > 0)
		length += snprintf(text + length, CELL_MAX - (size_t)length, ", waited %.16s", duration);
	if (borrows)
		length += snprintf(text + length, CELL_MAX - (size_t)length, "%sborrows %u", length > 0 ? ", " : "",
		                   tpcset_count(&process->borrowed.tpcs));
	return length > 0 ? text : "";
}

/* ------------------------------------------------------------------------------------------------------------------ */

const char *cell_of_row(const void *item, unsigned int cell, char text[CELL_MAX])
{
	const struct row *row = item;
	const char *shown = text;

	switch (cell) {
	case CELL_PID:
		snprintf(text, CELL_MAX, "%d", (int)row->process->pid);
		break;
	case CELL_USER:
		shown = row->process->user;
		break;
	case CELL_GPU:
		shown = row->gpu[0] != '\0' ? row->gpu : "-";
		break;
	case CELL_TPCS:
		shown = row->set ? tpcset_format_list(row->set, text) : "all";
		break;
	case CELL_GPCS:
		shown = format_gpcs(row, text);
		break;
	case CELL_QUOTA:
	case CELL_PRIORITY:
	case CELL_WEIGHT:
		shown = format_given(row->process, (enum setting)(cell - CELL_QUOTA), text);
		break;
	case CELL_LENDING:
		shown = format_lending(row, text);
		break;
	case CELL_BUSY:
		shown = format_busy(row, text);
		break;
	case CELL_TPC:
		shown = cell_percent(row->numbers[NUMBER_TPC_SHARE], text);
		break;
	case CELL_RATE:
		shown = cell_count(row->numbers[NUMBER_RATE], 1, text);
		break;
	case CELL_WAITING:
		shown = cell_count(row->numbers[NUMBER_IN_FLIGHT], 0, text);
		break;
	case CELL_TIME:
		shown = format_time(row->numbers[NUMBER_BUSY_TIME], text);
		break;
	case CELL_MEMORY:
		shown = format_memory(row, text);
		break;
	case CELL_WORKLOAD:
		shown = workload_format(&row->process->workload, text);
		break;
	case CELL_COMMAND:
		shown = row->process->command;
		break;
	default:
		shown = cell_whole(row->numbers[cell - CELL_NUMBER], text);
		break;
	}
	return shown;
}

struct reading cell_number(const struct row *row, enum cell cell)
{
	static const enum number numbers[CELL_NUMBER] = {
		[CELL_BUSY] = NUMBER_BUSY,           [CELL_TPC] = NUMBER_TPC_SHARE,   [CELL_RATE] = NUMBER_RATE,
		[CELL_WAITING] = NUMBER_IN_FLIGHT, [CELL_TIME] = NUMBER_BUSY_TIME,
		[CELL_MEMORY] = NUMBER_MEMORY,
	};
	struct reading number = {.is_known = false};

	if (cell >= CELL_QUOTA && cell <= CELL_WEIGHT)
		number = reading_of_setting(&row->process->revision, (enum setting)(cell - CELL_QUOTA));
	else if (numbers[cell] != 0)
		number = row->numbers[numbers[cell]];
	return number;
}
