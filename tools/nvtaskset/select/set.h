/* SET: what the user wrote, read and printed. */
#ifndef NVTASKSET_SELECT_SET_H
#define NVTASKSET_SELECT_SET_H

#include "base/error.h"
#include "base/pids.h"
#include "cli/gpus.h"
#include "cli/options.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "limits.h"
#include "state/group/group.h"
#include "state/segment/segment.h"

/* Finds the partition that the command line asks for on the chosen GPUs: the SET of each GPU, or the one SET for all.
 * No set is empty. "all" means the whole GPU in every notation. For a number of TPCs, it selects TPCs that no process
 * has. From then on no other nvtaskset can select TPCs until this process ends or executes another program, except with
 * --dry-run. -1 with the reason. */
int set_find(struct segment_revision *revision, const struct options *options, const struct gpu_choices *chosen,
             const struct topology_list *list, const struct set_limits *limits, struct error *error);

/* The TPCs of a GPU that processes have, apart from these. It holds up nobody else who selects TPCs. -1 with the reason. */
int set_find_taken(struct tpcset *taken, const struct topology *gpu, const struct topology_list *list, const struct pids *except,
                   struct error *error);

/* The same as set_find for a group, which may have TPCs already. If it has a file at `path`, its directory says what other groups have whose
 * processes may not be seen: with -n it stays locked until the caller closes `lock`, which is -1 at first. */
int set_find_in_group(struct segment_revision *revision, const struct options *options, const struct gpu_choices *chosen,
                      const struct topology_list *list, const struct group *group, const char *path, int *lock,
                      struct error *error);

/* Prints a partition so that it can be pasted behind -t. */
void set_print(const struct segment_revision *revision);

/* What set_format prints, for messages: "TPC mask" for masks, "TPC list" for every other notation. */
const char *set_noun(enum notation notation);

/* Prints the set in the notation that the user wrote. Instead of GPCs and numbers it prints a list of TPCs, which is
 * exact. Returns `text`. */
const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT]);

#endif
