/* Files in memory that processes share: making, mapping and locking them. */
#ifndef NVTASKSET_SHARED_FILE_H
#define NVTASKSET_SHARED_FILE_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How they are made. MFD_NOEXEC_SEAL is added if the kernel knows it (Linux 6.3). Not every C library
 * defines it. Other users may only read the file, if they inherit it (state/handle.h). */
#define SHARED_FILE_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define SHARED_FILE_MODE 0644
#define SHARED_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Whether nobody can change the size of the file, as of one that was made so; not so of any but a memfd. */
bool shared_file_is_sealed(int file);

/* Makes a file of zeros with this name in memory. -1 with the reason. */
int shared_file_make(const char *name, size_t size, struct error *error);

/* Maps a file for reading and writing, below `reach` if there is room, otherwise above it: for hardware whose addresses are shorter
 * than the processor's. NULL with errno. */
void *low_memory_map(int file, size_t size, uint64_t reach);

/* The lock that editors of a partition exclude each other by: on an open file, so that the kernel drops it when its holder
 * ends. It excludes open files from each other, not two threads that share one.
 *
 * Takes the lock of a file that is open for writing. It is held until lock_give_back, or until the file is closed. Waits a
 * bounded time, for others' edits or as long as the caller says; all of it is paid from the open purse (base/purse.h). -1 with the
 * reason. */
int lock_take(int file, struct error *error);
int lock_take_within(int file, unsigned int patience_ms, struct error *error);
void lock_give_back(int file);

#endif
