/*
 * Which TPCs are in use, so that others can be selected.
 *
 * Most programs have a segment: nvtaskset makes it before it executes them, and their children share it or have their
 * own. A program that has closed all its descriptors before it uses CUDA has none. It will get the partition of the
 * nearest ancestor with a segment, or the one in its environment. These TPCs are claimed too.
 */
#ifndef NVTASKSET_CLAIMS_H
#define NVTASKSET_CLAIMS_H

#include "base/error.h"
#include "base/pids.h"
#include "gpu/topology/topology.h"
#include "state/segment.h"

/* Finds the TPCs of all processes that this user may examine, except of those in `except` (NULL: none): a set for each
 * GPU of `list`. A partition that is the whole GPU claims nothing. -1 with the reason. */
int claims_find(struct segment_revision *occupied, const struct topology_list *list, const struct pids *except,
                  struct error *error);

#endif
