/*
 * The system calls that rm.c needs, so that tests can play a kernel driver.
 */
#ifndef NVTASKSET_TOPOLOGY_RM_H
#define NVTASKSET_TOPOLOGY_RM_H

#include "topology.h"

struct rm_system {
	int (*open)(const char *path); /* for reading and writing; a descriptor, or -1 with errno */
	int (*ioctl)(int file, unsigned long request, void *argument);
	int (*close)(int file);
};

/* topology_load_rm on another system than this one. */
int rm_load(const struct rm_system *system, const struct topology_wanted *wanted, struct topology_list *list,
            struct error *error);

#endif
