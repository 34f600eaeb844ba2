/*
 * ldconfig: makes the dynamic linker's cache, from the directories that the files in /etc/ld.so.conf.d name.
 */
#ifndef NVTASKSET_LDCONFIG_H
#define NVTASKSET_LDCONFIG_H

#include "error.h"

#define LDCONFIG_CACHE "/etc/ld.so.cache"

/* Makes it anew in the file `cache`, and changes nothing else: no links in the directories. -1 with the reason. */
int ldconfig_make(const char *cache, struct error *error);

#endif
