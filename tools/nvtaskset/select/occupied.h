/*
 * TPCs in use. Most programs have a segment: nvtaskset makes a segment before the exec, and children share the segment
 * or have their own. A program that closes all descriptors before its first use of CUDA has no segment. The TPCs that
 * the program will get are claimed too: the partition of the nearest ancestor with a segment, or of the environment.
 */
#ifndef NVTASKSET_SELECT_OCCUPIED_H
#define NVTASKSET_SELECT_OCCUPIED_H

#include "base/error.h"
#include "limits.h"
#include "state/segment/segment.h"

struct topology_list;

/* Finds the TPCs of all processes that this user may examine, except the processes in `limits`: a set for each GPU of
 * `list`. A partition of the whole GPU claims nothing. `some_are_hidden`: there are hidden programs. -1 with the
 * reason. */
int occupied_find(struct segment_revision *occupied, const struct topology_list *list, const struct set_limits *limits,
                  bool *some_are_hidden, struct error *error);

#endif
