/*
 * The processes that -p is about.
 */
#ifndef NVTASKSET_SELECT_TARGETS_H
#define NVTASKSET_SELECT_TARGETS_H

#include "base/error.h"
#include "base/pids.h"
#include "cli/gpus.h"
#include "cli/options.h"
#include "state/group/group.h"
#include "state/segment/edit.h"

#include <sys/types.h>

/* The processes: one that was named, with -a those of its descendants that have a partition of their own; or a group's. Each
 * array has an element for each. */
struct targets {
	size_t count;
	struct editor *editors;
	struct segment_revision *before;    /* as first read */
	struct segment_revision *revisions; /* as last read */
	struct gpu_choices *chosen;         /* the GPUs to show */
	struct pids without;                /* processes without a partition */
	struct error left_out;              /* why a process that may have a partition is not among them; "": none is */
};

/* Finds a process, which comes first, and its living descendants. The caller frees the list. -1 with the reason. */
int targets_find_tree(struct pids *tree, pid_t pid, struct error *error);

/* Those of these processes that have a partition of their own: of a shell and what it has started, many share its. -1 with the
 * reason where none has one; the caller closes also then. */
int targets_open(struct targets *targets, const struct pids *pids, struct error *error);

/* Adds those of these that have one by now. -1 with the reason. */
int targets_add(struct targets *targets, const struct pids *pids, struct error *error);

void targets_close(struct targets *targets);

/* Reads the revisions anew. Of several processes, some may have ended. -1 with the reason. */
int targets_read(struct targets *targets, struct error *error);

/* Whether it is one of several, and has ended. */
bool target_is_gone(const struct targets *targets, size_t number);

/* Why a process's partition is not in force; NULL if it is. If our library is being loaded just now, it waits for that. */
const char *target_obstacle(const struct editor *editor);

/* Which GPUs: those of -G; or those that the partition names, or CUDA's first if it names none. -1 with the reason. */
int target_gpus(struct gpu_choices *chosen, const struct options *options, const struct topology_list *list,
                const struct segment_revision *revision, struct error *error);

/* --- the groups of running programs (state/group/group.h), as the command line names them ------------------------------- */

/* Opens the group that `text` names: by its name, by the pid of a process that is in it, or by the path of its file. -1
 * with the reason. */
int group_target(struct group *group, const char *text, struct error *error);

/* A stray is in the group's control group only: having lost its environment and its descriptors, it has a partition of its
 * own, which does not follow. */
enum group_place {
	GROUP_OUTSIDE,
	GROUP_MEMBER,
	GROUP_STRAY
};

/* Where a process is whose segment names the group `identity`. */
enum group_place group_place_of(const struct group *group, pid_t pid, struct group_identity identity);

/* Opens the members and strays that have a partition, of which there may be none. -1 with the reason; the caller closes also then. */
int targets_open_group(struct targets *targets, const struct group *group, struct error *error);

#endif
