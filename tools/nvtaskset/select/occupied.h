/*
 * Which TPCs are in use, so that others can be selected. Most programs have a segment: nvtaskset makes it before it executes them,
 * and their children share it or have their own. A program that has closed all its descriptors before it uses CUDA has none. It
 * will get the partition of the nearest ancestor with a segment, or the one in its environment. These TPCs are claimed too.
 */
#ifndef NVTASKSET_SELECT_OCCUPIED_H
#define NVTASKSET_SELECT_OCCUPIED_H

#include "base/error.h"
#include "limits.h"
#include "state/segment/segment.h"

struct topology_list;

/* Finds the TPCs of all processes that this user may examine, except of those that `limits` names: a set for each GPU of
 * `list`. A partition that is the whole GPU claims nothing. `some_are_hidden`: there are programs that this user
 * may not examine. -1 with the reason. */
int occupied_find(struct segment_revision *occupied, const struct topology_list *list, const struct set_limits *limits,
                  bool *some_are_hidden, struct error *error);

#endif
