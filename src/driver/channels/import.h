/*
 * The driver library's import of `ioctl`: the word in its table of imports through which it calls the C library's function,
 * all of its calls of the kernel driver (facts.md, "Time slices").
 *
 * Only kernel_client.c uses it, in programs that were given something in time (SECURITY.md).
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_IMPORT_H
#define NVTASKSET_DRIVER_CHANNELS_IMPORT_H

#include "base/error.h"

typedef int import_ioctl(int file, unsigned long request, ...);
typedef _Atomic(import_ioctl *) import_place;

/* From here on, the driver library calls `ours`, from any thread and at once. `next` gets what it would have called: the C
 * library's function, or the one that the program has in its place; it is set before the first call. -1 with the reason,
 * and nothing has changed, if the import is not as we know it or leads anywhere else. Takes the dynamic linker's lock. */
int import_replace(import_ioctl *ours, import_place *next, struct error *error);

/* The driver library calls what it called before, unless somebody else has replaced the import meanwhile. */
void import_restore(import_ioctl *ours);

#endif
