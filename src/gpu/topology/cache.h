/*
 * Keeps measured topologies: a topology file for each GPU, UUID.txt, in a directory of the user's,
 * $XDG_CACHE_HOME/nvtaskset or ~/.cache/nvtaskset, or in /var/cache/nvtaskset, where root keeps them for everybody.
 * The user's own comes first. Root follows XDG_CACHE_HOME only to where nobody else can write.
 *
 * A file is trusted if it belongs to the directory's user (this user, or root) and nobody else can write it. It is
 * read in other people's processes too: whatever the file is, reading it ends soon and leaves nothing open.
 */
#ifndef NVTASKSET_TOPOLOGY_CACHE_H
#define NVTASKSET_TOPOLOGY_CACHE_H

#include "base/error.h"
#include "topology.h"

#include <limits.h>
#include <stdbool.h>

/* Reads the topology of the GPU with this UUID. -1 if there is none: with an empty reason if none was kept, else with
 * what is wrong with it. `root` is put before /var; "" except in tests. */
int cache_find(const char *root, const char *uuid, struct topology *gpu, struct error *error);

/* Reads all kept topologies, for machines that do not list their GPUs (Jetson). -1 as above, also if two have the same
 * PCI address. */
int cache_find_all(const char *root, struct topology_list *list, struct error *error);

/* Keeps the topology, and returns its path. An older one is replaced atomically. */
int cache_keep(const char *root, const struct topology *gpu, char path[PATH_MAX], struct error *error);

/* This user's cache directory, which may not exist yet. False if the user has none. */
bool cache_directory(char directory[PATH_MAX]);

#endif
