/*
 * Finding groups through the descriptors of processes. The processes may be hostile: no open file makes the search
 * wait.
 */
#pragma once

#include "base/purse.h"
#include "group.h"

/* For reading only, as members do, or for writing where this user may. */
enum group_use {
	GROUP_TO_OBEY,
	GROUP_TO_CHANGE
};

/* What a process says of its group, on the word of `user`, the owner of the segment. */
struct group_lead {
	pid_t pid;
	int number; /* of the descriptor of the group */
	struct group_identity identity;
	uid_t user;
};

/* group_open_of opens the group by the descriptor of `lead`. group_open_anywhere finds a group in memory by any
 * descriptor of any process that may be inspected, in milliseconds; a process of `user` names the group. False if the
 * group cannot be reached, or is not believed: a user's processes may be in groups of the user, and in a group of root
 * that the processes have open. `purse` pays for the looks (NULL: a purse of the search's own). */
bool group_open_of(struct group *group, const struct group_lead *lead, enum group_use use);
bool group_open_anywhere(struct group *group, struct group_identity identity, uid_t user, enum group_use use,
                         struct purse *purse);

/* Whether this process has room for the files that a search for a group opens at once; false with errno. */
bool group_has_room_for_search(void);

/* Looks for groups in memory with the name and the owner (-1: any), for changing. 0: no group; 1: a single group; 2:
 * several groups, and the last is open; -1 with errno: no room for the search. */
int group_open_named(struct group *group, const char *name, uid_t owner);

/* The number of this process's descriptor that names the group, and that programs inherit. If `descriptor` names the
 * group `former`, the descriptor is kept for the same group, or else replaced: the process does not keep a group alive
 * that the process has left. The group's file must be open. -1 with errno. */
int group_keep(const struct group *group, struct group_identity former, int descriptor);

/* The file of the process's group, open for writing. A lock on the file needs the descriptor: closing the file drops
 * the lock. -1 without a group's file, or without the right to write another user's file. The caller closes the
 * descriptor. */
int group_open_to_write(const struct group *of, int descriptor);

bool group_open_inherited(struct group *group); /* in memory, by an inherited descriptor */
