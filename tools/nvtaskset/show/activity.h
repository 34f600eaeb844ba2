/*
 * What programs did on the GPUs between two looks at them.
 *
 * A number that is not known says so; it is never 0 in its place.
 */
#ifndef NVTASKSET_ACTIVITY_H
#define NVTASKSET_ACTIVITY_H

#include "gpu/topology/topology.h"
#include "processes.h"
#include "rows.h"
#include "watched.h"

struct reading {
	bool is_known;
	double value; /* 0 if it is not known */
};

static inline struct reading reading_of(double value)
{
	return (struct reading){.is_known = true, .value = value};
}

/* A process on one GPU, since the look before. */
struct activity {
	struct row row;
	uint64_t ended;           /* kernels, as of this look, if in_flight is known */
	struct reading rate;      /* kernels that ended, for each second */
	struct reading in_flight; /* kernels that wait or run, as of this look */
	struct reading busy;      /* the share of the time in which at least one of its kernels was on the GPU: 0 … 1 */
	struct reading busy_error; /* by how much that may be wrong, since clocks are compared: 0 … 1 */
	struct reading tpcs;      /* the share of the GPU's TPCs and of the time that its kernels had: 0 … 1 */
	struct reading time;      /* seconds in which it was busy since the first look */
	struct reading tpc_time;  /* the same, times the TPCs that it had */
	struct reading measured;  /* seconds since the first look of which that is known */
	bool is_presence;         /* in time slices: the times contain those of other programs */
	const char *why_no_times; /* NULL where busy, tpcs and time are known */
};

/* One function of the process that was chosen for its kernels, since the first look; durations in nanoseconds. */
struct kernel_activity {
	char *name; /* demangled, clean text (terminal/text.h) */
	uint64_t instances;
	uint64_t timed; /* of them, those that the following was made from: of kernels of graphs, samples */
	struct reading share; /* of the sum of all kernels: 0 … 1 */
	struct reading sum, average, median, shortest, longest, deviation;
};

/* Initially all zero. */
struct activities {
	struct processes processes;
	const struct topology_list *gpus;
	double at_ms;        /* when this look was taken, as of clock_ms */
	struct reading span; /* seconds since the look before; not known at the first one */
	size_t count;
	struct activity *list; /* by rising pid; without programs that have only handed on their partition */
	bool measures_times;   /* whether times are measured; programs pay for that */
	pid_t kernels_of;      /* whose kernels are looked at, and only its times; 0: nobody's */
	struct watch_list watched;
	size_t kernel_count;
	struct kernel_activity *kernels;
	const char *why_no_kernels; /* NULL where they are known */
};

/* Looks at all processes that this user may examine; what they did since the look before goes into the rates. The caller
 * frees it in the end. -1 with the reason; what was there stays. */
int activities_look(struct activities *activities, const struct topology_list *gpus, struct error *error);
void activities_free(struct activities *activities);

/* To be called every LOOK_TAKE_MS between two looks that measure times: programs remember no more than that. */
void activities_keep_up(struct activities *activities);

/* The same process on the same GPU; NULL if it is not there. */
const struct activity *activities_find(const struct activities *activities, const struct process *process,
                                       struct pci_address gpu);

/* How many TPCs the process may use on the GPU of this row; not known if the GPU is not. */
struct reading activity_partition(const struct activity *activity, const struct topology_list *gpus);

#endif
