/*
 * The groups that processes are in (state/group/group.h), and the sums over them.
 */
#ifndef NVTASKSET_GROUPS_H
#define NVTASKSET_GROUPS_H

#include "activity.h"

#include <stdio.h>

struct group_sum {
	const struct process *first; /* the one with the lowest pid; it names the group */
	size_t members;              /* that this user may examine */
	struct reading numbers[NUMBER_COUNT]; /* the sums; those of times and rates mean nothing */
};

struct groups {
	size_t count;
	struct group_sum *list; /* by the first one's pid */
};

/* Sums up all groups, for each user apart. The caller frees the list; it refers to the processes. -1 with the reason. */
int groups_sum(struct groups *groups, const struct activities *activities, struct error *error);

bool group_has(const struct group_sum *group, const struct process *process);

/* Whether all processes that share these TPCs are in one group, as is meant there. */
bool groups_explain(const struct processes *processes, const struct shared *shared);

/* Prints a line for each group that has a name, or several members. */
void groups_print(const struct groups *groups, FILE *page);

#endif
