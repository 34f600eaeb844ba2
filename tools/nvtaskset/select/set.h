/* SET: the user's text, read and printed. */
#pragma once

#include "base/error.h"
#include "base/pids.h"
#include "cli/gpus.h"
#include "gpu/topology/topology.h"
#include "gpu/tpcset.h"
#include "state/group/group.h"
#include "state/segment/segment.h"

/* The part of a GPU that may be chosen. All 0: everything. */
struct set_limits {
	const struct pids *except;             /* processes whose TPCs count as free (-n) */
	const struct group *group;             /* likewise members with all of the group's partition */
	const struct segment_revision *taken;  /* TPCs that count as taken, even without a process (-n) */
	const struct segment_revision *fence;  /* the TPCs of the GPUs in `fence`; of any other GPU, all */
	bool is_dry_run;                       /* the choice (-n) is free for the next command, too */
};

/* Finds the partition of the command line on the chosen GPUs: the SET of each GPU, or the one SET for all. No set is
 * empty. "all" means the whole GPU in every notation. For a number of TPCs, selects free TPCs: from then on, until the
 * end or exec of this process, no second nvtaskset can select TPCs; except in a dry run. -1 with the reason. */
int set_find(struct segment_revision *revision, const struct set_given *given, const struct gpu_choices *chosen,
             const struct topology_list *list, const struct set_limits *limits, struct error *error);

/* Whether each SET is a number of TPCs that the GPU can have: set_find without the search. -1 with the reason. */
int set_check_count(const struct set_given *given, const struct gpu_choices *chosen, struct error *error);

/* The TPCs of a GPU that processes have, without `except`. Delays no selection of TPCs. -1 with the reason. */
int set_find_taken(struct tpcset *taken, const struct topology *gpu, const struct topology_list *list,
                   const struct pids *except, struct error *error);

/* Like set_find, for a group, which may have TPCs already. If the group has a file at `path`, the directory names the
 * TPCs of groups with hidden processes. With -n the directory stays locked until the caller closes `lock`, which
 * is -1 unless the caller has locked the directory; NULL: a dry run. */
int set_find_in_group(struct segment_revision *revision, const struct set_given *given,
                      const struct gpu_choices *chosen, const struct topology_list *list, const struct group *group,
                      const char *path, int *lock, struct error *error);

/* Prints a partition as text for -t. */
void set_print(const struct segment_revision *revision);

/* The noun for set_format's text, in messages: "TPC mask" for masks, "TPC list" for every other notation. */
const char *set_noun(enum notation notation);

/* The set in the user's notation. For GPCs and numbers, a list of TPCs, which is exact. Returns `text`. */
const char *set_format(const struct tpcset *set, enum notation notation, char text[TPCSET_TEXT]);

/* --- occupied.c --------------------------------------------------------------------------------------------------- */

/*
 * TPCs in use. Most programs have a segment: nvtaskset makes a segment before the exec, and children share the segment
 * or have their own. A program that closes all descriptors before its first use of CUDA has no segment. The TPCs that
 * the program will get are claimed too: the partition of the nearest ancestor with a segment, or of the environment.
 */

/* Finds the TPCs of all processes that this user may examine, except the processes in `limits`: a set for each GPU of
 * `list`. A partition of the whole GPU claims nothing. `some_are_hidden`: there are hidden programs. -1 with the
 * reason. */
int occupied_find(struct segment_revision *occupied, const struct topology_list *list, const struct set_limits *limits,
                  bool *some_are_hidden, struct error *error);
