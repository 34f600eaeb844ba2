/*
 * The paths of this machine's libraries in the dynamic linker's cache.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#define LOADER_CACHE "/etc/ld.so.cache"

/* Finds the first library with the name, for the machine's architecture, that `wanted` accepts; NULL accepts any. False
 * without a match, or for an unknown format. */
bool loader_cache_find(const char *cache, const char *name, bool (*wanted)(const char *path),
                       char path[PATH_MAX]);
