/*
 * The processes of -p.
 */
#pragma once

#include "base/error.h"
#include "base/pids.h"
#include "cli/gpus.h"
#include "state/group/group.h"
#include "state/segment/edit.h"

#include <sys/types.h>

struct target {
	struct segment_revision before, now; /* as first read, and as last read */
	struct gpu_choices chosen;           /* the GPUs to show */
};

/* The named process, with -a also its descendants with a partition of their own; or the processes of a group. */
struct targets {
	size_t count;
	struct target *list;
	struct editor *editors; /* of each target; editor_change takes an array */
	struct pids without;    /* processes without a partition */
	struct error left_out;  /* why a process that may have a partition is left out; "": none is */
};

/* Finds a process, first in the list, and its living descendants. The caller frees the list. -1 with the reason. */
int targets_find_tree(struct pids *tree, pid_t pid, struct error *error);

/* Opens the processes with a partition of their own: the children of a shell often share the shell's. -1 with the
 * reason if no process has a partition; the caller closes also then. */
int targets_open(struct targets *targets, const struct pids *pids, struct error *error);

/* Adds processes that have a partition by now. -1 with the reason. */
int targets_add(struct targets *targets, const struct pids *pids, struct error *error);

void targets_close(struct targets *targets);

/* Reads the revisions anew. Of several processes, some may have ended. -1 with the reason. */
int targets_read(struct targets *targets, struct error *error);

/* Whether the process is one of several, and has ended. */
bool target_is_gone(const struct targets *targets, size_t number);

/* Why a process's partition is not in force; NULL if in force. Waits while our library is being loaded. */
const char *target_obstacle(const struct editor *editor);

/* The GPUs of -G; or the GPUs of the partition; or CUDA's first GPU if there are none. -1 with the reason. */
int target_gpus(struct gpu_choices *chosen, const struct gpus_given *given, const struct topology_list *list,
                const struct segment_revision *revision, struct error *error);

/* --- groups of running programs (state/group/group.h), as on the command line ------------------------------------- */

/* Opens the group that `text` names: by name, by the pid of a member, or by the path of a file. -1 with the reason. */
int targets_group(struct group *group, const char *text, struct error *error);

/* A stray is in the group's control group only: without its environment and descriptors, it does not follow the
 * group. */
enum group_place {
	GROUP_OUTSIDE,
	GROUP_MEMBER,
	GROUP_STRAY
};

/* The place of a process, whose segment names the group `identity`. */
enum group_place targets_place_in_group(const struct group *group, pid_t pid, struct group_identity identity);

/* Opens the members and strays with a partition, if any. -1 with the reason; the caller closes also then. */
int targets_open_group(struct targets *targets, const struct group *group, struct error *error);
