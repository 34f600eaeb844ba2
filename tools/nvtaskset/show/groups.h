/*
 * The groups of processes (state/group/group.h), and the sums over their members.
 */
#pragma once

#include "activity.h"

#include <stdio.h>

struct group_sum {
	const struct process *first; /* with the lowest pid; names the group */
	size_t members;              /* only processes that this user may examine */
	struct reading numbers[NUMBER_COUNT]; /* the sums of times and rates mean nothing */
};

struct groups {
	size_t count;
	struct group_sum *list; /* by the pid of `first` */
};

/* Sums up all groups, for each user apart. The caller frees the list, which needs the processes. -1 with the reason. */
int groups_sum(struct groups *groups, const struct activities *activities, struct error *error);

bool group_has(const struct group_sum *group, const struct process *process);

/* Whether all processes with these TPCs are in one group: then sharing is meant. */
bool groups_explain(const struct processes *processes, const struct shared *shared);

/* Prints a line for each group that has a name, or several members. */
void groups_print(const struct groups *groups, FILE *page);
