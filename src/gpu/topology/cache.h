/*
 * Where measured topologies are kept: a topology file for each GPU, UUID.txt, in a directory of the user's,
 * $XDG_CACHE_HOME/nvtaskset or ~/.cache/nvtaskset, or in /var/cache/nvtaskset, where root's are, for everybody. The user's
 * own comes first. Root follows XDG_CACHE_HOME only to where nobody else can write.
 *
 * A file is believed if it belongs to whom the directory is for (the user, root) and nobody else can write it. It is
 * read in other people's processes too: whatever lies there, reading it ends soon and leaves nothing open.
 */
#ifndef NVTASKSET_TOPOLOGY_CACHE_H
#define NVTASKSET_TOPOLOGY_CACHE_H

#include "base/error.h"
#include "topology.h"

#include <limits.h>
#include <stdbool.h>

/* The topology of the GPU with this UUID. -1 where there is none: with an empty reason where nobody kept one, else
 * with what is wrong with it. `root` is "" but in tests: it goes before /var. */
int cache_find(const char *root, const char *uuid, struct topology *gpu, struct error *error);

/* All that are kept, for machines that do not list their GPUs (Jetson). -1 as above; two for one PCI address are one
 * too many. */
int cache_find_all(const char *root, struct topology_list *list, struct error *error);

/* Keeps the topology, in place of an older one, and says where. The old one stays whole until the new one is. */
int cache_keep(const char *root, const struct topology *gpu, char path[PATH_MAX], struct error *error);

/* Where this user's are kept: a directory for what can be made again, which need not be there. False where there is none
 * for this user. */
bool cache_directory(char directory[PATH_MAX]);

#endif
