/*
 * Functions that the kernel maps into each process (the vDSO; vdso(7)). Uses no name of the C library, since a program
 * may replace each name.
 */
#ifndef NVTASKSET_VDSO_H
#define NVTASKSET_VDSO_H

#include <stddef.h>

/* The function of a name; NULL if the kernel maps no function of the name. No system call. */
void *vdso_function(const char *name);

/* The same in an image of at most `size` bytes. Nothing outside is read, also of a broken image. */
const void *vdso_find(const void *bytes, size_t size, const char *name);

#endif
