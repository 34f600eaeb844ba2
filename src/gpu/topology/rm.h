/*
 * Asks NVIDIA's kernel driver for the TPCs of each GPU, by the calls of facts.md, "Topology".
 *
 * Runs in foreign programs too: allocates nothing, and closes all descriptors before returning. The kernel frees all
 * objects with the descriptors.
 */
#pragma once

#include "topology.h"

/* The system calls, replaced by tests to simulate a kernel driver. */
struct rm_system {
	int (*open)(const char *path); /* for reading and writing; a descriptor, or -1 with errno */
	int (*ioctl)(int file, unsigned long request, void *argument);
	int (*close)(int file);
};

/* topology_load_rm with other system calls. */
int rm_load(const struct rm_system *system, const struct topology_wanted *wanted, struct topology_list *list,
            struct error *error);

/* topology_read_memory with the given system calls. */
bool rm_read_memory(const struct rm_system *system, struct pci_address pci, struct topology_user *users,
                    unsigned int count, uint64_t *free_bytes);
