/*
 * Our own library, as a file.
 */
#ifndef NVTASKSET_OWN_LIBRARY_H
#define NVTASKSET_OWN_LIBRARY_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* Where we are installed: in a build tree lib beside the command, else PREFIX/lib/nvtaskset of the command's
 * PREFIX/bin. */
int own_library_directory(char directory[PATH_MAX], struct error *error);

/* Whether a file is our library, under whatever name. */
bool own_library_is(const char *path);

#endif
