/*
 * Metrics as text for Prometheus and others: OpenMetrics 1.0, or the classic format, version 0.0.4.
 *
 * In OpenMetrics, samples of a counter end in "_total", and the name of the family does not. OpenMetrics has types and
 * units that the classic format lacks, and a last line that says that nothing is missing.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdio.h>

/* X(identifier, name, type, unit, help). A name ends with its unit. Units are base units, and counts are numbers. */
#define METRICS(X)                                                                                                     \
	X(BUILD, "nvtaskset_build", INFO, "", "The nvtaskset that says this.")                                         \
	X(GPU, "nvtaskset_gpu", INFO, "", "A GPU of this machine.")                                                    \
	X(GPU_TPCS, "nvtaskset_gpu_tpcs", GAUGE, "tpcs", "How many TPCs the GPU has.")                                 \
	X(HIDDEN, "nvtaskset_programs_hidden", GAUGE, "", "1 if there are programs that this user may not look at, else 0.") \
	X(PROGRAM, "nvtaskset_program", INFO, "", "A program with a partition, by the name of its process.")           \
	X(IN_FORCE, "nvtaskset_program_in_force", GAUGE, "", "1 if the program obeys its partition, else 0.")          \
	X(TPCS, "nvtaskset_program_tpcs", GAUGE, "tpcs", "How many TPCs of the GPU are in the program's partition.")   \
	X(LAUNCHED, "nvtaskset_launched_kernels", COUNTER, "kernels", "Kernels that the program has launched.")        \
	X(ENDED, "nvtaskset_ended_kernels", COUNTER, "kernels", "Kernels that have ended, as the GPU counts.")         \
	X(IN_FLIGHT, "nvtaskset_in_flight_kernels", GAUGE, "kernels", "Kernels that wait or run.")                     \
	X(MEASURED, "nvtaskset_measured_seconds", COUNTER, "seconds", "Time for which busy and TPC seconds are known.") \
	X(BUSY, "nvtaskset_busy_seconds", COUNTER, "seconds", "Time in which a kernel of the program was on the GPU.") \
	X(PRESENT, "nvtaskset_present_seconds", COUNTER, "seconds", "In place of busy time in time slices: it contains those of others.") \
	X(TPC_TIME, "nvtaskset_tpc_seconds", COUNTER, "seconds", "Busy time, times the TPCs that the kernels had.")     \
	X(MEMORY, "nvtaskset_memory_bytes", GAUGE, "bytes", "Memory of the GPU that the program has.") \
	X(MEMORY_LIMIT, "nvtaskset_memory_limit_bytes", GAUGE, "bytes", \
	  "At most so much, for the program or its group together.") \
	X(UPLOADS, "nvtaskset_uploads", COUNTER, "", "Kernels that the driver has uploaded, those of graphs once.")    \
	X(RESTRICTED, "nvtaskset_restricted_uploads", COUNTER, "", "Uploads that were kept inside the partition.")     \
	X(OUTSIDE, "nvtaskset_outside_launches", COUNTER, "", "Launches that ran outside the partition, in whole or in part.") \
	X(BORROWED, "nvtaskset_borrowed_tpc_seconds", COUNTER, "seconds", "Time in TPCs that others lend, times these TPCs; by lender.") \
	X(OVERRUNS, "nvtaskset_borrowed_overruns", COUNTER, "", "Launches there that took longer than the lender's limit.")

enum metric {
#define METRIC_ENUM(identifier, name, type, unit, help) METRIC_##identifier,
	METRICS(METRIC_ENUM)
#undef METRIC_ENUM
	METRIC_COUNT
};

/* Labels with the value NULL or "" are left out: for a reader that is the same. */
#define LABELS_OF_METRIC 16
struct metric_labels {
	unsigned int count;
	struct {
		const char *name, *value;
	} list[LABELS_OF_METRIC];
};

void metric_label(struct metric_labels *labels, const char *name, const char *value);

/* The samples of each metric, as text. */
struct exposition {
	bool is_classic;
	struct family {
		FILE *file; /* NULL: there is no memory */
		char *text;
		size_t length;
	} families[METRIC_COUNT];
};

void exposition_begin(struct exposition *exposition, bool is_classic);

/* The value of an INFO is 1. */
void exposition_add(struct exposition *exposition, enum metric metric, const struct metric_labels *labels,
                    double value);

/* Writes the page, with the samples of a family together, and ends the exposition. -1 with the reason if there was no
 * memory. The caller checks the file for write errors. */
int exposition_end(struct exposition *exposition, FILE *file, struct error *error);
