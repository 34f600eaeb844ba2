/*
 * In whose hands a path is: who can change what it leads to, and who can get there.
 *
 * A library that root loads, and a file that root believes, must not be another user's to replace; and that can whoever owns
 * any directory or link on the way, or can write to one. In directories such as /tmp nobody can replace what others own.
 */
#ifndef NVTASKSET_TRUST_H
#define NVTASKSET_TRUST_H

#include "error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

enum trust {
	TRUST_NOW,    /* as long as what is there stays */
	TRUST_FOREVER /* once it is removed, nobody else can put something in its place: so none of it is in /tmp */
};

/* 0 where nobody but `user`, root and whoever owns / can change what an absolute path leads to, or make what is missing of
 * it. -1 with the first directory, link or file that they can change. */
int trust_check(const char *path, uid_t user, enum trust trust, struct error *error);

/* Makes a directory of this user's, with those above it, in which nobody else can change anything. `real` is its path
 * without links, which leads there whatever becomes of these. Root's can be entered by everybody, whatever the umask. */
int trust_make_directory(const char *path, char real[PATH_MAX], struct error *error);

/* 0 where users who are neither the owner nor in the group can read the file of an absolute path, or enter the directory; -1
 * with what keeps them out. */
int trust_check_open(const char *path, struct error *error);

#endif
