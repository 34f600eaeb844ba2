/* SET: the user's text, read and printed. */
#ifndef NVTASKSET_SELECT_SET_H
#define NVTASKSET_SELECT_SET_H

#include "base/error.h"
#include "base/pids.h"
#include "cli/gpus.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "limits.h"
#include "state/group/group.h"
#include "state/segment/segment.h"

/* Finds the partition of the command line on the chosen GPUs: the SET of each GPU, or the one SET for all. No set is
 * empty. "all" means the whole GPU in every notation. For a number of TPCs, selects free TPCs: from then on, until the
 * end or exec of this process, no second nvtaskset can select TPCs; except in a dry run. -1 with the reason. */
int set_find(struct segment_revision *revision, const struct set_given *given, const struct gpu_choices *chosen,
             const struct topology_list *list, const struct set_limits *limits, struct error *error);

/* The TPCs of a GPU that processes have, without `except`. Delays no selection of TPCs. -1 with the reason. */
int set_find_taken(struct tpcset *taken, const struct topology *gpu, const struct topology_list *list,
                   const struct pids *except, struct error *error);

/* Like set_find, for a group, which may have TPCs already. If the group has a file at `path`, the directory names the
 * TPCs of groups with hidden processes. With -n the directory stays locked until the caller closes `lock`, at first
 * -1; NULL: a dry run. */
int set_find_in_group(struct segment_revision *revision, const struct set_given *given,
                      const struct gpu_choices *chosen, const struct topology_list *list, const struct group *group,
                      const char *path, int *lock, struct error *error);

/* Prints a partition as text for -t. */
void set_print(const struct segment_revision *revision);

/* The noun for set_format's text, in messages: "TPC mask" for masks, "TPC list" for every other notation. */
const char *set_noun(enum notation notation);

/* The set in the user's notation. For GPCs and numbers, a list of TPCs, which is exact. Returns `text`. */
const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT]);

#endif
