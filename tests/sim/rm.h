/*
 * NVIDIA's kernel driver, as far as the driver library and those who watch it talk to it: objects of a client, and what
 * they are asked and told (docs/facts.md, "Time slices").
 *
 * The simulated driver library calls `ioctl` as the real one does, on a descriptor that stands for /dev/nvidiactl. A
 * program that offers an `ioctl` of its own (tests/gpu/support/kernel.c) passes such calls to simulated_ioctl, whoever
 * makes them. Without such a program, nobody answers, and the library answers itself.
 *
 * A question about a client that does not exist ends the test: the real one writes a line into the kernel's log.
 */
#ifndef SIM_RM_H
#define SIM_RM_H

#include "api.h"

/* cuInit makes the clients, and an object for each GPU. */
void rm_open(unsigned int gpus);

/* Makes the context's objects, with the default time slices; they are freed. */
void rm_context_created(CUcontext context);
void rm_context_destroyed(CUcontext context);

/* The driver library's one call of `ioctl`. */
int rm_call(int file, unsigned long request, void *argument);

#endif
