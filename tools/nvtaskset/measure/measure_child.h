/*
 * The part of 'measure' that runs in a process of its own. It launches kernels, and infers from the SMs on which they
 * ran the mask bit and the virtual GPC of each TPC. There CUDA may hang, crash and take half a gigabyte of memory. The
 * parent (measure.c) waits for it, and ends it if it makes no progress.
 */
#ifndef NVTASKSET_MEASURE_CHILD_H
#define NVTASKSET_MEASURE_CHILD_H

#include "base/error.h"
#include "cli/options.h"
#include "gpu/topology/measured.h"
#include "gpu/topology/topology.h"

#include <stdatomic.h>
#include <stdbool.h>

/* In memory that parent and child share. */
struct measure_report {
	_Atomic unsigned int progress; /* rises with each launch */
	_Atomic bool done;             /* set after everything else */
	struct error error;            /* an empty reason: success */
	struct topology_list measured; /* in the order in which they were chosen */
	enum measured_numbers numbers[TOPOLOGY_GPUS_MAX];
};

/* Measures the GPUs that `options` choose, or all visible ones if it chooses none, through our library in the file
 * `library`. Changes the environment of this process. */
void measure_child(const struct options *options, const char *library, struct measure_report *report);

#endif
