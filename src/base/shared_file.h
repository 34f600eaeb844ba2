/* Files in shared memory: making, mapping and locking. */
#pragma once

#include "error.h"
#include "purse.h"

#include <stdint.h>
#include <sys/types.h>

/* How the files are made. MFD_NOEXEC_SEAL is added if the kernel knows the flag (Linux 6.3). Not every C library
 * defines the flag. Other users may only read an inherited file (state/handle.h). */
#define SHARED_FILE_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define SHARED_FILE_MODE 0644
#define SHARED_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Whether the size of the file can never change, as of a file made here; false for all but memfds. */
bool shared_file_is_sealed(int file);

/* Makes a file of zeros with the name in memory. -1 with the reason. */
int shared_file_make(const char *name, size_t size, struct error *error);

/* Whether the file is open for writing. */
bool shared_file_may_write(int file);

/* Maps a part of a file, for reading or also for writing. NULL with errno. */
void *shared_file_map(int file, off_t at, size_t size, bool to_write);

/* Maps a file for reading and writing, below `reach` if there is room, otherwise above: for hardware with shorter
 * addresses than the processor's. NULL with errno. */
void *shared_file_map_low(int file, size_t size, uint64_t reach);

/* The lock by which editors of a partition exclude each other: on an open file, dropped by the kernel when the holder
 * ends. The lock excludes by open file: two threads with the same open file do not exclude each other.
 *
 * Takes the lock of a file open for writing, until shared_file_unlock or until the file is closed. shared_file_lock
 * waits for two seconds at most, shared_file_lock_within for `patience_ms`, paid from `purse` (base/purse.h). -1 with
 * the reason: BUSY if another process has the lock. */
int shared_file_lock(int file, struct purse *purse, struct error *error);
int shared_file_lock_within(int file, struct purse *purse, unsigned int patience_ms, struct error *error);
void shared_file_unlock(int file);
