/*
 * Finds the driver library, and our own.
 */
#ifndef NVTASKSET_DRIVER_H
#define NVTASKSET_DRIVER_H

#include "base/error.h"
#include "library_path.h"

#include <limits.h>
#include <stdbool.h>

/* Finds the libcuda.so.1 that a program started here would load without us. Searches NVTASKSET_DRIVER, `first` (NULL:
 * LD_LIBRARY_PATH), the dynamic linker's cache, and the directories of NVIDIA's packages and containers. Never finds
 * our own library, a toolkit's stub, or a file that the dynamic linker passes over. `path` is absolute. Unless
 * NVTASKSET_DRIVER or a relative directory gave it, it ends in libcuda.so.1, and so leads to the driver after an
 * upgrade too. 0, or -1 with the reason. */
int driver_find(const struct library_path *first, char path[PATH_MAX], struct error *error);

/* A part of driver_find: searches the dynamic linker's cache. `name` is libcuda.so.1 or libcuda.so. */
bool driver_find_in_cache(const char *name, char path[PATH_MAX]);

/* A part of it for a container, which has the driver's file, but perhaps not yet its links: searches this directory first. */
bool driver_find_installed(const char *directory, char path[PATH_MAX]);

/* A part of it: searches such a list. */
bool driver_find_in_list(const struct library_path *list, char path[PATH_MAX]);

/* Programs that find the driver without the dynamic linker's cache: LD_LIBRARY_PATH names its directory, as in NVIDIA's
 * containers. */
struct driver_bypass {
	const char *where;      /* where LD_LIBRARY_PATH is set, for messages; constant */
	char driver[PATH_MAX];  /* the driver in one of its directories */
};

/* Reads LD_LIBRARY_PATH where new programs may get it from: this environment, /etc/environment, and the environment of
 * process 1, which only root can read. False if none of them names a directory with the driver. */
bool driver_find_bypass(struct driver_bypass *bypass);

/* Finds the directory where our library is installed: lib beside the command in a build tree, otherwise
 * PREFIX/lib/nvtaskset for a command in PREFIX/bin. 0, or -1 with the reason. */
int own_library_directory(char directory[PATH_MAX], struct error *error);

/* Whether a file is our library, whatever its name. */
bool own_library_is(const char *path);

#endif
