/*
 * Finds libraries where glibc's dynamic linker does: in the directories of LD_LIBRARY_PATH, in subdirectories for this
 * CPU, and in the linker's cache. Each function gives the first file that `wanted` accepts, or false.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* A list as in LD_LIBRARY_PATH. An empty element is the current directory. */
struct library_path {
	const char *directories; /* NULL or "": none */
	const char *origin;      /* for $ORIGIN, the directory of the program; NULL: no element with $ORIGIN counts */
};

/* `path` is relative where a directory is. */
bool library_path_find(const struct library_path *list, const char *name, bool (*wanted)(const char *path),
                       char path[PATH_MAX]);

/* In a directory of the linker's own. */
bool library_path_find_in(const char *directory, const char *name, bool (*wanted)(const char *path),
                          char path[PATH_MAX]);

/* libc.so.6 of the root directory: in the linker's cache, and else where systems have libc. */
bool library_path_find_glibc(char path[PATH_MAX]);

/* Whether this CPU is good enough for a library below glibc-hwcaps/NAME. True for any path elsewhere. */
bool library_path_suits_cpu(const char *path);
