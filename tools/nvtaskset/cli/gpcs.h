/*
 * In which GPCs of the chip a set of TPCs lies. Programs in one GPC share its caches.
 */
#ifndef NVTASKSET_CLI_GPCS_H
#define NVTASKSET_CLI_GPCS_H

#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

/* GPC numbers, as members of a tpcset: GPCs all of whose TPCs are in the set, and GPCs of which some are. TPCs that the
 * GPU lacks do not count. */
struct gpcs {
	struct tpcset whole, part;
};

/* TPCs whose GPC is unknown are left out. */
struct gpcs gpcs_of(const struct topology *gpu, const struct tpcset *set);

/* Prints a list with '~' behind GPCs that are there in part: "1,3~,5-7~" is all of GPC 1 and some of 3, 5, 6 and 7.
 * Returns `text`. */
const char *gpcs_format(const struct gpcs *gpcs, char text[TPCSET_TEXT]);

/* Whether the TPC is in no virtual GPC. A cluster there can only use the SMs of this one TPC. */
bool gpcs_is_singleton(const struct topology *gpu, unsigned int tpc);

#endif
