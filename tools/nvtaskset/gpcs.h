/*
 * Which GPCs of the chip a set of TPCs lies in: those are what programs share caches in.
 */
#ifndef NVTASKSET_GPCS_H
#define NVTASKSET_GPCS_H

#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

/* GPC numbers, as members of a tpcset: those that the set has all present TPCs of, and those that it has some of. */
struct gpcs {
	struct tpcset whole, part;
};

/* TPCs whose GPC is unknown are left out. */
struct gpcs gpcs_of(const struct topology *gpu, const struct tpcset *set);

/* A list in which '~' stands behind what is there in part: "1,3~,5-7~" is all of GPC 1 and some of 3, 5, 6 and 7. */
const char *gpcs_format(const struct gpcs *gpcs, char text[TPCSET_TEXT]);

/* Whether the TPC is in no virtual GPC: a cluster has no more room there than its own SMs. */
bool gpcs_is_singleton(const struct topology *gpu, unsigned int tpc);

#endif
