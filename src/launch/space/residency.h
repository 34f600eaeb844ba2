/*
 * The last decider: launches whose blocks must run at once, that is clusters and cooperative grids. They hang if the
 * partition cannot hold them (facts.md, "Launches that never finish"). So such a launch gets a superset of the
 * partition that holds it: whole virtual GPCs are added until it does (gpu/topology/occupancy.h). One that the
 * partition holds, but not what is left of it for now, does not yield (yielding.h).
 *
 * The driver's own mask is obeyed if the TPCs that both it and the partition enable can hold the launch. Otherwise it
 * is overruled, as for other launches (qmd.h): a green context does not lead out of the partition. The driver also
 * disables TPCs on which no cluster has room; our topology knows these as well.
 *
 * With --on-misfit fail, the launch fails instead. It cannot be stopped in the launch callback, only in the API call that it comes
 * from. There we make the call ask for an empty grid, which the driver refuses, and replace its error by one that says what was
 * wrong (docs/hardware.md).
 */
#ifndef NVTASKSET_LAUNCH_SPACE_RESIDENCY_H
#define NVTASKSET_LAUNCH_SPACE_RESIDENCY_H

#include "decision.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "gpu/topology/occupancy.h"

#include <stdbool.h>

#define MISFIT_ENVIRONMENT "NVTASKSET_ON_MISFIT"

/* Changes restricted launches only; their descriptor must have a known version. */
void residency_decide(const struct launch *launch, struct decision *decision);

/* What the launch needs that an API call asks for. */
struct occupancy residency_need(const struct topology *topology, const struct launch_request *request);

/* Reads the environment. Call it before another thread can change that. */
void residency_open(void);

/* Whether we must hear of this API call; one begins, or has ended. */
bool residency_wants_call(int id);
void residency_call_begins(const struct call *call);
void residency_call_ended(const struct call *call);

#endif
