/*
 * A group's file, which whoever manages jobs makes, changes and removes (group.h).
 */
#ifndef NVTASKSET_STATE_GROUP_FILE_H
#define NVTASKSET_STATE_GROUP_FILE_H

#include "group.h"

/* The path of the file that this program's group has; NULL if there is none: the one that the environment names. In a container
 * that has a device, it is one of those that are mounted, whatever the environment says. Not for several threads at once. */
const char *group_file_named(void);

/* Opens the group of a file for obeying: it is root's or this user's, and others cannot write to it. -1 with the
 * reason. */
int group_file_obey(struct group *group, const char *path, struct error *error);

/* The same for changing it, where this user may, or else for reading. Nobody else can replace anything on the way to the
 * file. -1 with the reason. */
int group_file_open(struct group *group, const char *path, struct error *error);

/* Makes a file for a group that has no partition yet: for everybody to read, for its user to write. Its name is the
 * group's. `cgroup` is as in /proc/PID/cgroup, or "". Opens the one that is there already. -1 with the reason. */
int group_file_make(struct group *group, const char *path, const char *cgroup, struct error *error);

/* Removes it; one that is not there is no failure. Processes that run keep what they had last. -1 with the reason. */
int group_file_remove(const char *path, struct error *error);

/* Keeps others from choosing TPCs in the directory of this file, until the descriptor is closed. Waits a bounded time. -1
 * with the reason. */
int group_file_lock_directory(const char *path, struct error *error);

/* Adds to `taken` the TPCs of all groups that have a file in the same directory, but not of `except`, whose file this is. -1
 * with the reason, also if that is not there any more, or mounted from elsewhere: others would be given what it claimed. */
int group_file_add_taken(struct segment_revision *taken, const char *path, struct group_identity except,
                         struct error *error);

#endif
