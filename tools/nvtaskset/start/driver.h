/*
 * Finds the driver library.
 */
#ifndef NVTASKSET_DRIVER_H
#define NVTASKSET_DRIVER_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* Finds the libcuda.so.1 that a program started here would load without us. Searches NVTASKSET_DRIVER, LD_LIBRARY_PATH,
 * the dynamic linker's cache, and the directories of NVIDIA's packages and containers. Never finds our own library or a
 * toolkit's stub. `path` is absolute. Unless NVTASKSET_DRIVER or a relative directory gave it, it ends in libcuda.so.1,
 * and so leads to the driver after an upgrade too. 0, or -1 with the reason. */
int driver_find(char path[PATH_MAX], struct error *error);

/* Parts of driver_find: search a list of directories such as LD_LIBRARY_PATH, and the dynamic linker's cache. `name` is
 * libcuda.so.1 or libcuda.so. */
bool driver_find_in_directories(const char *directories, char path[PATH_MAX]);
bool driver_find_in_cache(const char *name, char path[PATH_MAX]);

#endif
