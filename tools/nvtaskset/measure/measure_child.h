/*
 * What 'measure' does in a process of its own: launches kernels, and finds out from where they ran which TPC has which
 * mask bit and lies in which virtual GPC. CUDA may hang, crash and cost half a gigabyte there; the parent
 * (measure.c) waits, and has its own deadline.
 */
#ifndef NVTASKSET_MEASURE_CHILD_H
#define NVTASKSET_MEASURE_CHILD_H

#include "base/error.h"
#include "gpu/topology/measured.h"
#include "gpu/topology/topology.h"
#include "options.h"

#include <stdatomic.h>
#include <stdbool.h>

/* In memory that parent and child share. */
struct measure_report {
	_Atomic unsigned int progress; /* rises with each launch */
	_Atomic bool done;             /* set last */
	struct error error;            /* "" where all went well */
	struct topology_list measured; /* as they were chosen */
	enum measured_numbers numbers[TOPOLOGY_GPUS_MAX];
};

/* Measures the GPUs that `options` choose, all visible ones where it chooses none, behind our library at `library`.
 * Changes this process's environment. */
void measure_child(const struct options *options, const char *library, struct measure_report *report);

#endif
