/*
 * The GPCs of a set of TPCs. Programs in one GPC share its caches.
 */
#pragma once

#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"

/* GPC numbers, as members of a tpcset: GPCs with all their TPCs in the set, and with some. TPCs that the GPU lacks do
 * not count. */
struct gpcs {
	struct tpcset whole, part;
};

/* TPCs whose GPC is unknown are left out. */
struct gpcs gpcs_of(const struct topology *gpu, const struct tpcset *set);

/* Prints a list with '~' behind partial GPCs: "1,3~,5-7~" is all of GPC 1 and some of 3, 5, 6 and 7. Returns `text`. */
const char *gpcs_format(const struct gpcs *gpcs, char text[TPCSET_TEXT]);

/* Whether the TPC is in no virtual GPC. A cluster there can only use the SMs of this TPC. */
bool gpcs_is_singleton(const struct topology *gpu, unsigned int tpc);
