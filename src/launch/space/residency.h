/*
 * The last decider: launches whose blocks must run at once, that is clusters and cooperative grids. They hang if the
 * partition cannot hold them (facts.md, "Launches that never finish"). So such a launch gets a superset of the
 * partition that holds it: whole virtual GPCs are added until it does (gpu/topology/occupancy.h). One that the
 * partition holds, but not what is left of it for now, does not step aside (yielding.h).
 *
 * The driver's own mask is obeyed if the TPCs that both it and the partition enable can hold the launch. Otherwise it
 * is overruled, as for other launches (qmd.h): a green context does not lead out of the partition. The driver also
 * disables TPCs on which no cluster has room; our topology knows these as well.
 */
#ifndef NVTASKSET_LAUNCH_SPACE_RESIDENCY_H
#define NVTASKSET_LAUNCH_SPACE_RESIDENCY_H

#include "decision.h"
#include "driver/gpus.h"
#include "driver/hook.h"

#include <stdbool.h>

/* Changes restricted launches only; their descriptor must have a known version. */
void residency_decide(const struct launch *launch, struct decision *decision);

/* Whether these TPCs can hold the launch that an API call asks for. */
bool residency_holds(const struct gpu *gpu, const struct launch_request *request, const struct tpcset *set);

#endif
