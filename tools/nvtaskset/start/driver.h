/*
 * The real driver library, and the directory that puts our library in front of it.
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

/* A directory that holds our library as libcuda.so.1, and beside it a link to `driver` under the name by
 * which our library asks for it: where we are installed, if the link there leads to this driver, else a
 * directory of this user's, made now, in which nobody else can change anything. */
int driver_library_directory(const char *driver, char directory[PATH_MAX], struct error *error);

/* 0 where a program that changes its user, as root's can, still gets at all that this directory leads to; -1 with what keeps
 * it from that. */
int driver_check_others(const char *directory, struct error *error);

/* Where we are installed: in a build tree lib beside the command, else PREFIX/lib/nvtaskset of the command's
 * PREFIX/bin. */
int driver_own_directory(char directory[PATH_MAX], struct error *error);

/* Whether a file is our library, under whatever name. */
bool driver_is_ours(const char *path);

#endif
