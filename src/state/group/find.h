/*
 * Finding groups through the descriptors that processes have. These may be hostile: nothing that they have open makes us
 * wait.
 */
#ifndef NVTASKSET_STATE_GROUP_FIND_H
#define NVTASKSET_STATE_GROUP_FIND_H

#include "group.h"

/* Whether for reading only, as members do, or for writing where this user may. */
enum group_use {
	GROUP_TO_OBEY,
	GROUP_TO_CHANGE
};

/* What a process says of its group, and whose word that is: the owner of the segment. */
struct group_lead {
	pid_t pid;
	int number; /* of its descriptor */
	struct group_identity identity;
	uid_t user;
};

/* Opens the group by that descriptor; or the group in memory that `user` says it is in, by any descriptor of any process that
 * may be looked into, which takes milliseconds. False if it cannot be reached, or is not believed: a user's processes may be in
 * groups of that user's, and in one of root's that they have open. */
bool group_open_of(struct group *group, const struct group_lead *lead, enum group_use use);
bool group_open_anywhere(struct group *group, struct group_identity identity, uid_t user, enum group_use use);

/* Looks for groups in memory with this name and owner (-1: of anybody), for changing. 0 if there is none, 1 if there is one,
 * 2 if there are several: then the last is open. */
int group_open_named(struct group *group, const char *name, uid_t owner);

/* The number of this process's own descriptor that names the group, and that programs inherit. `descriptor` may be one
 * that names the group `former`: it is used if that is the same, or else replaced, so that nobody keeps a group that it has
 * left. The group's file must be open. -1 with errno. */
int group_keep(const struct group *group, struct group_identity former, int descriptor);

/* The file of the process's group, open for writing; the process keeps the descriptor for as long as a lock on the
 * file: closing the file drops the lock. -1 without a group's file, or without the right to write: another
 * user's. The caller closes the descriptor. */
int group_open_to_write(const struct group *of, int descriptor);

/* The group in memory that this process has inherited a descriptor of. */
bool group_open_inherited(struct group *group);

#endif
