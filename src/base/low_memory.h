/* Shared memory at a low address, for hardware whose addresses are shorter than the processor's. */
#ifndef NVTASKSET_LOW_MEMORY_H
#define NVTASKSET_LOW_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Maps a file for reading and writing, below `reach` if there is room, otherwise above it. NULL with errno. */
void *low_memory_map(int file, size_t size, uint64_t reach);

#endif
