/*
 * The dynamic linker's cache, /etc/ld.so.cache: where a library of this machine lies.
 */
#ifndef NVTASKSET_LOADER_CACHE_H
#define NVTASKSET_LOADER_CACHE_H

#include <limits.h>
#include <stdbool.h>

/* The path of the first library of this machine's kind with this name for which `wanted` says yes. */
bool loader_cache_find(const char *cache, const char *name, bool (*wanted)(const char *path),
                       char path[PATH_MAX]);

#endif
