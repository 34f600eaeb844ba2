/*
 * Finds the driver library, and our own.
 */
#pragma once

#include "base/error.h"
#include "library_path.h"

#include <limits.h>

/* Finds the libcuda.so.1 that a program started here would load without us. Searches NVTASKSET_DRIVER, `first` (NULL:
 * LD_LIBRARY_PATH), the dynamic linker's cache, and the directories of NVIDIA's packages and containers. Never finds
 * our own library, a toolkit's stub, or a file that the dynamic linker passes over. `path` is absolute. Unless from
 * NVTASKSET_DRIVER or a relative directory, `path` ends in libcuda.so.1, and leads to the driver after an upgrade too.
 * 0, or -1 with the reason. */
int driver_find(const struct library_path *first, char path[PATH_MAX], struct error *error);

/* Only the dynamic linker's cache. `name` is libcuda.so.1 or libcuda.so. */
bool driver_find_in_cache(const char *name, char path[PATH_MAX]);

/* For a container, which may lack the links to the driver's file: searches `directory` first. */
bool driver_find_installed(const char *directory, char path[PATH_MAX]);

/* Only the list. */
bool driver_find_in_list(const struct library_path *list, char path[PATH_MAX]);

/* Programs that find the driver without the linker's cache, by LD_LIBRARY_PATH, as in NVIDIA's containers. */
struct driver_bypass {
	const char *where;      /* where LD_LIBRARY_PATH is set, for messages; constant */
	char driver[PATH_MAX];  /* the driver in a directory of the list */
};

/* Reads LD_LIBRARY_PATH in the sources of new programs: the environment here, /etc/environment, and the environment of
 * process 1, readable for root only. False if no directory has the driver. */
bool driver_find_bypass(struct driver_bypass *bypass);

/* Finds the directory where our library is installed: lib beside the command in a build tree, otherwise
 * PREFIX/lib/nvtaskset for a command in PREFIX/bin. 0, or -1 with the reason. */
int start_library_directory(char directory[PATH_MAX], struct error *error);

/* Whether a file is our library, whatever its name. */
bool start_is_our_library(const char *path);
