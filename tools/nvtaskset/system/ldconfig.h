/*
 * ldconfig: makes the dynamic linker's cache, from the directories that the files in /etc/ld.so.conf.d name.
 */
#ifndef NVTASKSET_LDCONFIG_H
#define NVTASKSET_LDCONFIG_H

#include "base/error.h"

#define LDCONFIG_CACHE "/etc/ld.so.cache"

/*
 * Makes it anew in the file `cache`, and changes nothing else: no links in the directories. While it is at work, another
 * file is `cache` with "~" behind it. `held` is open in its process too: a lock that shall last until it has ended, whatever
 * becomes of us. -1 with the reason.
 */
int ldconfig_make(const char *cache, int held, struct error *error);

#endif
