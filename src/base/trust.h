/*
 * Who can change what a path leads to, and who can read it.
 *
 * A library that root loads, or a file that root believes, must not be replaceable by another user. Whoever owns a
 * directory or link on the way, or can write to one, can replace it. In sticky directories such as /tmp nobody can
 * replace what others own.
 */
#ifndef NVTASKSET_TRUST_H
#define NVTASKSET_TRUST_H

#include "error.h"

#include <limits.h>
#include <sys/types.h>

enum trust {
	TRUST_NOW,    /* nobody else can change it as long as it exists */
	TRUST_FOREVER /* also after it is removed, nobody else can put something in its place: so no part of it is in /tmp */
};

/* 0 if only `user`, root and the owner of / can change what an absolute path leads to, or create its missing part. -1
 * with the first directory, link or file that others can change. */
int trust_check(const char *path, uid_t user, enum trust trust, struct error *error);

/* Makes a directory of this user's, and those above it, in which nobody else can change anything. `real` gets its path
 * without links. If root makes it, everybody can enter it, whatever the umask. */
int trust_make_directory(const char *path, char real[PATH_MAX], struct error *error);

/* 0 if users who are neither the owner nor in the group can read the file at an absolute path, or enter the directory.
 * -1 with what keeps them out. */
int trust_check_open(const char *path, struct error *error);

#endif
