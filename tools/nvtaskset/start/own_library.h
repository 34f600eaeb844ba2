/*
 * Our own library, as a file.
 */
#ifndef NVTASKSET_OWN_LIBRARY_H
#define NVTASKSET_OWN_LIBRARY_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* Finds the directory where our library is installed: lib beside the command in a build tree, otherwise
 * PREFIX/lib/nvtaskset for a command in PREFIX/bin. 0, or -1 with the reason. */
int own_library_directory(char directory[PATH_MAX], struct error *error);

/* Whether a file is our library, whatever its name. */
bool own_library_is(const char *path);

#endif
