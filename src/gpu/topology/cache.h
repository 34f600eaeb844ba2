/*
 * Keeps measured topologies: a topology file for each GPU, UUID.txt, in a directory of the user,
 * $XDG_CACHE_HOME/nvtaskset or ~/.cache/nvtaskset, or in /var/cache/nvtaskset, where root keeps topologies for all
 * users. The user's own files come first. Root follows XDG_CACHE_HOME only to places where no other user can write.
 *
 * A file is trusted if the file belongs to the directory's user (this user, or root) and no other user can write there.
 * Reading also happens in foreign programs: for any file, reading ends soon and leaves nothing open.
 */
#pragma once

#include "base/error.h"
#include "topology.h"

#include <limits.h>
#include <stdbool.h>

/* Reads the topology of the GPU with the UUID. -1 with an empty reason for a missing file, else with the reason. `root`
 * is put before /var; "" except in tests. */
int cache_find(const char *root, const char *uuid, struct topology *gpu, struct error *error);

/* Reads all kept topologies, for machines that do not list the GPUs (Jetson). -1 as above, also for two topologies with
 * the same PCI address. */
int cache_find_all(const char *root, struct topology_list *list, struct error *error);

/* Keeps the topology, in place of an older topology, atomically; `path` gets the file's path. -1 with the reason, also
 * for a GPU without a UUID. */
int cache_keep(const char *root, const struct topology *gpu, char path[PATH_MAX], struct error *error);

/* This user's cache directory, which may not exist yet. False if the user has none. */
bool cache_directory(char directory[PATH_MAX]);

/* A file in this user's cache directory, as a string of less than `room` bytes; "" without a trusted file. */
void cache_read_text(const char *root, const char *name, char *text, size_t room);

/* Replaces the file atomically. -1 with the reason. */
int cache_write_text(const char *root, const char *name, const char *text, struct error *error);
