/*
 * The numbers of programs: a row for each GPU of each program. Lists, `top`, JSON and metrics show the rows.
 *
 * A number that is not known says so, and is never 0 instead.
 */
#pragma once

#include "gpu/topology/topology.h"
#include "processes.h"
#include "state/setting_text.h"

struct reading {
	bool is_known;
	double value; /* 0 if not known */
};

static inline struct reading reading_of(double value)
{
	return (struct reading){.is_known = true, .value = value};
}

static inline struct reading reading_if(bool is_known, double value)
{
	return (struct reading){.is_known = is_known, .value = is_known ? value : 0};
}

/* setting_number. */
static inline struct reading reading_of_setting(const struct segment_revision *revision, enum setting setting)
{
	double number = setting_number(revision, setting);

	return reading_if(number >= 0, number);
}

/* For qsort: the largest first, readings that are not known last. */
static inline int reading_compare(struct reading a, struct reading b)
{
	return a.is_known != b.is_known ? b.is_known - a.is_known : (a.value < b.value) - (a.value > b.value);
}

/* X(identifier, member in JSON, whether an integer there). First numbers of the program on one GPU: kernels; since the
 * look before; since the first look, in seconds; memory. Then numbers of the whole program, only in its first row. */
#define NUMBERS(X)                                          \
	X(LAUNCHES, "launches", true)                       \
	X(ENDED, "ended", true)                             \
	X(IN_FLIGHT, "in_flight", true)                     \
	X(UNANNOUNCED, "unannounced", true)                 \
	X(RATE, "kernels_per_second", false)                \
	X(BUSY, "busy", false)                              \
	X(BUSY_ERROR, "busy_error", false)                  \
	X(TPC_SHARE, "tpc_share", false)                    \
	X(WAITED, "waited_seconds", false)                  \
	X(BUSY_TIME, "busy_seconds", false)                 \
	X(TPC_TIME, "tpc_seconds", false)                   \
	X(MEASURED_TIME, "measured_seconds", false)         \
	X(MEMORY, "memory_bytes", true)                     \
	X(MEMORY_LIMIT, "memory_limit_bytes", true)         \
	X(UPLOADS, "uploads", true)                         \
	X(RESTRICTED, "restricted", true)                   \
	X(OUTSIDE, "outside", true)                         \
	X(REFRESHED, "graph_nodes_refreshed", true)         \
	X(BORROWED_TIME, "borrowed_tpc_us", true)           \
	X(OVERRUNS, "overruns", true)

enum number {
#define NUMBER_ENUM(identifier, member, is_integer) NUMBER_##identifier,
	NUMBERS(NUMBER_ENUM)
#undef NUMBER_ENUM
	NUMBER_COUNT,
	NUMBER_OF_PROGRAM = NUMBER_UPLOADS /* the first of the whole program */
};

/* A process on one GPU: first the partition's GPUs, then GPUs with launches. A process without GPUs has one row. */
struct row {
	const struct process *process;
	uint32_t place; /* among the rows of the process, from 0 on */
	bool has_gpu;
	struct pci_address pci;
	const struct topology *topology; /* NULL: not known */
	char gpu[PCI_ADDRESS_TEXT];      /* as -G names it; "" for none */
	const struct tpcset *set;        /* NULL: the GPU is not restricted */
	uint32_t gaps;                   /* why kernels are not known: a bit for each enum counts_gap */
	struct reading numbers[NUMBER_COUNT];
	bool is_presence; /* in time slices: the times contain times of other programs */
	bool shares;      /* another program has some of the same TPCs; only for `top` */
	const char *why_no_times; /* NULL: known */
};

/* Fills in the row of row->process at row->place, with all counts. False if there is no such row. */
bool row_find(struct row *row, const struct topology_list *gpus);
