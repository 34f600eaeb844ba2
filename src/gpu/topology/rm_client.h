/*
 * A connection to NVIDIA's kernel driver. Objects made through it are freed with it.
 */
#ifndef NVTASKSET_TOPOLOGY_RM_CLIENT_H
#define NVTASKSET_TOPOLOGY_RM_CLIENT_H

#include "base/error.h"

#include <stdint.h>

/* The system calls that are used, so that tests can simulate a kernel driver. */
struct rm_system {
	int (*open)(const char *path); /* for reading and writing; a descriptor, or -1 with errno */
	int (*ioctl)(int file, unsigned long request, void *argument);
	int (*close)(int file);
};

/* A client of the driver, on /dev/nvidiactl. */
struct rm {
	const struct rm_system *system;
	int file;
	uint32_t client;
};

/* -1 with the reason, and nothing to disconnect. */
int rm_connect(struct rm *rm, const struct rm_system *system, struct error *error);
void rm_disconnect(const struct rm *rm);

/* Makes an object below its parent, with a handle of our choice. -1 if the kernel or the driver refuses. */
int rm_alloc(struct rm *rm, uint32_t parent, uint32_t object, uint32_t class, void *parameters, uint32_t size);

/* Sends a command to an object. Returns the driver's status (rm_abi.h): STATUS_OK on success, STATUS_NOT_PERMITTED also
 * if the kernel refuses the call. */
uint32_t rm_control(const struct rm *rm, uint32_t object, uint32_t command, void *parameters, uint32_t size);

#endif
