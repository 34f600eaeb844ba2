/*
 * The sources of topologies where neither a named file nor the kernel driver has GPUs. `root`, the root of the file
 * system, is "" except in tests.
 */
#pragma once

#include "topology.h"

/* Loads from the cache of `nvtaskset measure`. -1 with an empty reason for an empty cache, else with the reason. */
int load_cache(const char *root, struct topology_list *list, struct error *error);

/* The same, after topology_load_rm has failed with the result `failure` and the reason in `error`. If the driver
 * refuses (TOPOLOGY_REFUSED), no other source is used: an earlier measurement is invalid while MIG is on. -1 with the
 * reason and the remedy. */
int load_fallback(const char *root, int failure, struct topology_list *list, struct error *error);

/* --- procfs ------------------------------------------------------------------------------------------------------- */

/*
 * The GPUs that NVIDIA's kernel module lists under /proc/driver/nvidia/gpus, with their identity only. Needs neither
 * root nor the module's ioctls. The driver's README, "proc Interface", describes the files.
 *
 * May run in foreign programs: nothing is left open, and every loop is bounded.
 */

struct procfs_gpu {
	struct pci_address pci;
	char uuid[TOPOLOGY_UUID_MAX]; /* "" if not yet known to the module */
	char name[TOPOLOGY_NAME_MAX];
};

/* Fills `gpus` with the GPUs that this process may use (the device file can be opened), at most TOPOLOGY_GPUS_MAX, in
 * no order. Returns the number of GPUs; 0 without the module, as on Jetson. `root` is put before every path; "" except
 * in tests. */
unsigned int topology_read_procfs(const char *root, struct procfs_gpu *gpus);
