/*
 * The real driver library.
 */
#ifndef NVTASKSET_DRIVER_H
#define NVTASKSET_DRIVER_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>

/* Finds the libcuda.so.1 that a program started here would load if it were not for us: NVTASKSET_DRIVER;
 * LD_LIBRARY_PATH; the dynamic linker's cache; the directories where NVIDIA's packages and containers put it.
 * Never our own library, never a toolkit's stub. `path` is absolute, and leads through the name
 * libcuda.so.1 where it can, so that it goes on leading to the driver after an upgrade. */
int driver_find(char path[PATH_MAX], struct error *error);

/* Parts of it: in the directories of a list such as LD_LIBRARY_PATH's; in the dynamic linker's cache, under either name that
 * the driver goes by. */
bool driver_find_in_directories(const char *directories, char path[PATH_MAX]);
bool driver_find_in_cache(const char *name, char path[PATH_MAX]);

#endif
