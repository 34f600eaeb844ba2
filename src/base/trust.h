/*
 * Which users can change the target of a path, and read the target.
 *
 * No other user may be able to replace a library that root loads, or a file that root believes. The owner of a
 * directory or link on the path, and a user with the right to write there, can replace the target. In a sticky
 * directory, as /tmp, only the owner can replace a file.
 */
#pragma once

#include "error.h"

#include <limits.h>
#include <sys/types.h>

enum trust {
	TRUST_NOW,    /* no other user can change the target while it exists */
	TRUST_FOREVER /* nor after a removal: no directory of the path is as /tmp */
};

/* 0 if only `user`, root and the owner of / can change the target of an absolute path, or create the missing part. -1
 * with the first unsafe directory, link or file. */
int trust_check(const char *path, uid_t user, enum trust trust, struct error *error);

/* Makes a directory of this user, and missing parents, writable for no other user. `real` gets the path without links.
 * Every user can enter a directory made by root, with any umask. */
int trust_make_directory(const char *path, char real[PATH_MAX], struct error *error);

/* The opposite question: 0 if users other than the owner and outside the group can read the file at an absolute path,
 * or enter the directory. -1 with the obstacle. */
int trust_check_readable(const char *path, struct error *error);
