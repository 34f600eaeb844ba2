/*
 * The dynamic linker's cache, /etc/ld.so.cache: the paths of this machine's libraries.
 */
#ifndef NVTASKSET_LOADER_CACHE_H
#define NVTASKSET_LOADER_CACHE_H

#include <limits.h>
#include <stdbool.h>

#define LOADER_CACHE "/etc/ld.so.cache"

/* Finds the first library with this name, for this machine's architecture, that `wanted` accepts; NULL accepts any.
 * False if there is none or the file is no such cache. */
bool loader_cache_find(const char *cache, const char *name, bool (*wanted)(const char *path),
                       char path[PATH_MAX]);

#endif
