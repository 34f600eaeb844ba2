/*
 * The CUDA driver's client of NVIDIA's kernel driver: through it, and the descriptor that it was made with, a process reaches
 * its own objects (facts.md, "Time slices"). To learn these two, we watch what the CUDA driver asks the kernel driver
 * (import.h). Nothing is asked about any other client.
 *
 * Only for channels.h, in programs that were given something in time.
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_KERNEL_CLIENT_H
#define NVTASKSET_DRIVER_CHANNELS_KERNEL_CLIENT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CLASS_GROUP = 0xa06c /* class/cla06c.h: a group of channels; whoever makes one is the client */
};

/* From here on, the CUDA driver's calls are watched; `made` is told of each object that it has made, in the thread that made it.
 * What is learnt needs no memory, lock or system call but one fstat for each client. -1 with the reason, and nothing has changed.
 * May be repeated. */
int kernel_client_watch(void (*made)(uint32_t object, uint32_t class), struct error *error);
void kernel_client_unwatch(void);

bool kernel_client_is_known(void);

/* Makes the CUDA driver ask, so that its client becomes known: in this thread's context; or in an active primary one, which is
 * held meanwhile. Calls the CUDA driver. */
void kernel_client_provoke(void);
void kernel_client_provoke_in_primary(void);

/* A copy of what is known. -1 with the reason if nothing is known, or the descriptor is another file now: the program may have
 * closed it. */
struct kernel_client {
	uint32_t handle; /* 0: not known yet */
	int file;
	dev_t device;
	ino_t inode;
};
int kernel_client_reach(struct kernel_client *client, struct error *error);

/* It has channels: no other client takes its place. */
void kernel_client_is_proven(void);

/* Controls one of its objects; returns the status (gpu/topology/rm_abi.h). */
uint32_t kernel_client_control(const struct kernel_client *client, uint32_t object, uint32_t command, void *parameters,
                               uint32_t size);

/* What one of its handles stands for; 0 if there is no such object. */
uint32_t kernel_client_parent_of(const struct kernel_client *client, uint32_t handle);
uint32_t kernel_client_class_of(const struct kernel_client *client, uint32_t handle);

/* In the child of a fork: it has none. */
void kernel_client_after_fork(void);

#endif
