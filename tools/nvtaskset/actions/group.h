/*
 * The groups of running programs (state/group/group.h), as the command line names them.
 */
#ifndef NVTASKSET_ACTIONS_GROUP_H
#define NVTASKSET_ACTIONS_GROUP_H

#include "base/error.h"
#include "base/pids.h"
#include "state/group/group.h"

#include <sys/types.h>

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

/* Adds the members and strays that have a segment. -1 with the reason. */
int group_find_processes(struct pids *found, const struct group *group, struct error *error);

#endif
