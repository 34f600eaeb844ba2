/*
 * The last decider: launches whose blocks must run at once, clusters and cooperative grids, hang where the partition cannot
 * hold them (docs/facts.md, "Launches that never finish"). Such a launch gets the smallest superset of its partition
 * that can, whole virtual GPCs at a time.
 *
 * The driver's own mask is obeyed where what it has in common with the partition can hold the launch. Otherwise it is
 * overruled, as for other launches (qmd.h): a green context does not lead out of the partition. Of the TPCs that it keeps
 * clusters from, since none has room there, our topology knows the same.
 */
#ifndef NVTASKSET_SHIM_RESIDENCY_H
#define NVTASKSET_SHIM_RESIDENCY_H

#include "decision.h"
#include "driver/gpus.h"
#include "driver/hook.h"

#include <stdbool.h>

/* Of a launch whose descriptor has a known version. Others stay as they were decided. */
void residency_decide(const struct launch *launch, struct decision *decision);

/* Whether these TPCs can hold what a call asks for. */
bool residency_holds(const struct gpu *gpu, const struct launch_request *request, const struct tpcset *set);

#endif
