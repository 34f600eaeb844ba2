/*
 * NVIDIA's kernel driver, as far as the driver library and those who watch it talk to it: objects of a client, and what
 * clients ask and tell (facts.md, "Time slices").
 *
 * The driver library calls `ioctl` as the real one does, on a descriptor that stands for /dev/nvidiactl. A kernel would answer. So the
 * library leads the C library's function to itself when it is loaded (rm_door.c): calls on that descriptor are answered here, in
 * any program and whoever makes them, and all others go to the kernel.
 *
 * A question about a client that does not exist ends the test: the real one writes a line into the kernel's log.
 */
#ifndef SIM_RM_H
#define SIM_RM_H

#include "api.h"

#include <stdbool.h>

/* cuInit makes the clients, and an object for each GPU. */
void rm_open(unsigned int gpus);

/* Makes the context's objects, with the default time slices; they are freed. */
void rm_context_created(CUcontext context);
void rm_context_destroyed(CUcontext context);

/* The driver library's one call of `ioctl`. */
int rm_call(int file, unsigned long request, void *argument);

/* The kernel's side: whether this is the descriptor; and its answer, as ioctl's. */
bool rm_is_file(int number);
int rm_answer(unsigned long request, void *argument);

/* Opens /dev/nvidiactl for questions about memory, with FAULT_TELLS_MEMORY (rm_memory.c); whether a descriptor is for
 * questions; the answer, as ioctl's. */
int rm_memory_open(void);
bool rm_memory_is_file(int number);
int rm_memory_answer(unsigned long request, void *argument);

/* An empty file, with one descriptor. */
int rm_open_file(void);

#endif
