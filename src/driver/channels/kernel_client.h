/*
 * The CUDA driver's client of NVIDIA's kernel driver. With the client, and the descriptor of its making, a process
 * reaches its own objects (facts.md, "Time slices"). To learn both, we watch the CUDA driver's calls of the kernel
 * driver (import.c). Nothing is asked about any other client.
 *
 * Only for channels.h, in programs that were given something in time.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	CLASS_GROUP = 0xa06c /* class/cla06c.h: a group of channels; its maker is the client */
};

/* From here on, the CUDA driver's calls are watched. `made` is told of each new object, in the thread of the call. A
 * watched call needs no memory, no lock and no system call but one fstat for each client. -1 with the reason, and no
 * change. May be repeated. */
int kernel_client_watch(void (*made)(uint32_t object, uint32_t class), struct error *error);
void kernel_client_unwatch(void);

bool kernel_client_is_known(void);

/* Makes the CUDA driver ask, to learn the client: in this thread's context; or in an active primary context, held
 * meanwhile. Calls the CUDA driver. */
void kernel_client_provoke(void);
void kernel_client_provoke_in_primary(void);

/* A copy of the known client. -1 with the reason if no client is known, or the descriptor is a different file now: the
 * program may have closed the descriptor. */
struct kernel_client {
	uint32_t handle; /* 0: not known yet */
	int file;
	dev_t device;
	ino_t inode;
};
int kernel_client_reach(struct kernel_client *client, struct error *error);

/* The client has channels: no other client takes its place. */
void kernel_client_settle(void);

/* Controls an object of the client; returns the status (gpu/topology/rm_abi.h). */
uint32_t kernel_client_control(const struct kernel_client *client, uint32_t object, uint32_t command, void *parameters,
                               uint32_t size);

/* The parent and the class of a handle; 0 if there is no object. */
uint32_t kernel_client_parent_of(const struct kernel_client *client, uint32_t handle);
uint32_t kernel_client_class_of(const struct kernel_client *client, uint32_t handle);

/* In the child of a fork: no client is known. */
void kernel_client_after_fork(void);

/* --- import.c ----------------------------------------------------------------------------------------------------- */

/*
 * The driver library's import of `ioctl`: a word in the library's table of imports. All calls of the kernel driver go
 * through the word to the C library's function (facts.md, "Time slices").
 *
 * Only kernel_client.c uses the import, in programs that were given something in time (SECURITY.md).
 */

typedef int import_ioctl(int file, unsigned long request, ...);
typedef _Atomic(import_ioctl *) import_place;

/* From here on, the driver library calls `ours`, from any number of threads. `next` gets the former function before
 * the first call: the C library's, or the program's own instead. -1 with the reason, and no change, if the import is
 * unknown to us or leads anywhere else. Takes the dynamic linker's lock. */
int import_replace(import_ioctl *ours, import_place *next, struct error *error);

/* Puts the former function back, unless the import has been replaced again meanwhile. */
void import_restore(import_ioctl *ours);
