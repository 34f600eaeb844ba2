/*
 * A group's file: made, changed and removed by the manager of jobs (group.h).
 */
#pragma once

#include "group.h"

/* The path of this program's group file, from the environment; NULL without a file. In a container with a device of
 * `nvtaskset cdi`, the file is mounted, and the environment only chooses among the mounted files. For a single
 * thread. */
const char *group_file_named(void);

/* Opens the group of a file for obeying: the file belongs to root or this user, and no other user can write there. -1
 * with the reason. */
int group_file_obey(struct group *group, const char *path, struct error *error);

/* The same for changing the group, where this user may, or else for reading. No other user can replace a part of the
 * path. -1 with the reason. */
int group_file_open(struct group *group, const char *path, struct error *error);

/* Makes a group's file without partitions: all users may read, and the user may write. The file's name is the group's
 * name. `cgroup` is as in /proc/PID/cgroup, or "". Opens an existing file. -1 with the reason. X_locked: the caller
 * holds the lock of the directory. */
int group_file_make(struct group *group, const char *path, const char *cgroup, struct error *error);
int group_file_make_locked(struct group *group, const char *path, const char *cgroup, struct error *error);

/* Removes the file; no failure if there is none. Running processes keep their partitions. -1 with the reason. */
int group_file_remove(const char *path, struct error *error);
int group_file_remove_locked(const char *path, struct error *error);

/* Keeps other processes from choosing TPCs in the directory of the file, until the descriptor is closed. Waits a
 * bounded time. -1 with the reason. */
int group_file_lock_directory(const char *path, struct error *error);

/* Adds to `taken` the TPCs of all groups with a file in the directory of `path`, except `except`. -1 with the reason,
 * also if the file of `except` is not in the directory: then other groups would get the TPCs of `except`. */
int group_file_add_taken(struct segment_revision *taken, const char *path, struct group_identity except,
                         struct error *error);
