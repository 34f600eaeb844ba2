/*
 * The last decider: launches with blocks that must run at once, in clusters and cooperative grids. A launch hangs if
 * the partition cannot hold the blocks (facts.md, "Launches that never finish"). So the launch gets a superset of the
 * partition: whole virtual GPCs are added until the blocks fit (gpu/topology/occupancy.c). A launch that fits into the
 * partition, but not into the TPCs left for now, does not yield (yielding.h).
 *
 * The driver's own mask is obeyed if the launch fits into the TPCs that both mask and partition enable. Otherwise the
 * mask is overruled, as for all launches (qmd.h): a green context does not lead out of the partition. The driver also
 * disables TPCs without room for a cluster; our topology knows these as well.
 *
 * With --on-misfit fail, the launch fails instead. The launch callback cannot stop a launch, but the API call around
 * can: we make the call ask for an empty grid, which the driver refuses, and replace the driver's error by the real
 * reason (docs/internals/hardware.md).
 */
#pragma once

#include "decision.h"
#include "driver/gpus.h"
#include "driver/hook.h"
#include "gpu/topology/topology.h"

#define MISFIT_ENVIRONMENT "NVTASKSET_ON_MISFIT"

/* Changes restricted launches only. The descriptor must have a known version. */
void residency_decide(const struct launch *launch, struct decision *decision);

/* Whether blocks of the launch must run at once. The descriptor must have a known version. */
bool residency_must_fit(const struct launch *launch);

/* The need of the launch in an API call. */
struct occupancy residency_need(const struct topology *topology, const struct launch_request *request);

/* Reads the environment: to be called before another thread can change it. */
void residency_open(void);

/* Whether we must hear of an API call; the call begins, or has ended. */
bool residency_wants_call(int id);
void residency_call_begins(const struct call *call);
void residency_call_ended(const struct call *call);
