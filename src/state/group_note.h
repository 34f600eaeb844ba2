/*
 * The note at a control group (cgroup) that says which file is its group's: the extended attribute user.nvtaskset of the
 * control group's directory, with the file's absolute path. Who has lost environment and descriptors is still in its job's
 * control group, and finds the file there.
 *
 * It says the same as NVTASKSET_GROUP_FILE in the environment would, which comes first. It is looked for at the start
 * only. It needs version 2 of control groups, at its usual place, and Linux 5.7.
 *
 * A note counts if nobody but root and this user can have written it: else a user could write one that root's programs
 * obey which were started from there (sudo). Its file is then judged as any other.
 */
#ifndef NVTASKSET_GROUP_NOTE_H
#define NVTASKSET_GROUP_NOTE_H

#include <limits.h>
#include <stdbool.h>

#define GROUP_NOTE_NAME "user.nvtaskset"

struct group_path {
	const char *path;   /* NULL: none */
	const char *source; /* what says so, for messages */
	char noted[PATH_MAX];
};

/* Finds the path of the file of this process's group: in the environment; if it is not there, and the process has no group
 * yet, in the note of its control group, or else of the nearest above that has one that counts. That takes three to five
 * system calls, and one for each control group on the way. Allocates nothing, and preserves errno. */
void group_path_find(struct group_path *found, bool has_group);

/* Writes the note of a control group, named as in /proc/PID/cgroup, where the kernel permits that; and removes it if it is
 * still about this file. */
void group_note_write(const char *cgroup, const char *path);
void group_note_remove(const char *cgroup, const char *path);

#endif
