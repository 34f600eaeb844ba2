/*
 * The groups of running programs (state/group/group.h), as the command line names them. -p --group.
 */
#ifndef NVTASKSET_ACTIONS_GROUP_H
#define NVTASKSET_ACTIONS_GROUP_H

#include "base/error.h"
#include "cli/options.h"
#include "state/group/group.h"

/* Opens the group that `text` names: by its name, by the pid of a process that is in it, or by the path of its file. -1
 * with the reason. */
int group_target(struct group *group, const char *text, struct error *error);

/* -p --group. As action_partition. */
int group_action(const struct options *options, struct error *error);

#endif
