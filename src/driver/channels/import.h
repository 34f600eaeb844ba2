/*
 * The driver library's import of `ioctl`: a word in the library's table of imports. All calls of the kernel driver go
 * through the word to the C library's function (facts.md, "Time slices").
 *
 * Only kernel_client.c uses the import, in programs that were given something in time (SECURITY.md).
 */
#ifndef NVTASKSET_DRIVER_CHANNELS_IMPORT_H
#define NVTASKSET_DRIVER_CHANNELS_IMPORT_H

#include "base/error.h"

typedef int import_ioctl(int file, unsigned long request, ...);
typedef _Atomic(import_ioctl *) import_place;

/* From here on, the driver library calls `ours`, from any thread and at once. `next` gets the former function before
 * the first call: the C library's, or the program's own instead. -1 with the reason, and no change, if the import is
 * unknown to us or leads anywhere else. Takes the dynamic linker's lock. */
int import_replace(import_ioctl *ours, import_place *next, struct error *error);

/* Puts the former function back, unless the import has been replaced again meanwhile. */
void import_restore(import_ioctl *ours);

#endif
