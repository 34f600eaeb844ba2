/*
 * Runs ldconfig, which makes the dynamic linker's cache from the directories that the files in /etc/ld.so.conf.d name.
 */
#ifndef NVTASKSET_LDCONFIG_H
#define NVTASKSET_LDCONFIG_H

#include "base/error.h"

#define LDCONFIG_CACHE "/etc/ld.so.cache"

/*
 * Rebuilds the cache in the file `cache`, and changes nothing else: no links in the directories. While ldconfig runs,
 * there is a temporary file with the name of `cache` and "~". ldconfig keeps the descriptor `held` open: a lock that
 * must last until ldconfig has ended, even if we are killed. -1 with the reason.
 */
int ldconfig_make(const char *cache, int held, struct error *error);

#endif
