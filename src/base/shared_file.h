/* Files in memory that processes share. */
#ifndef NVTASKSET_SHARED_FILE_H
#define NVTASKSET_SHARED_FILE_H

#include "error.h"

#include <stddef.h>

/* How they are made. MFD_NOEXEC_SEAL is added if the kernel knows it (Linux 6.3). Not every C library
 * defines it. Other users may only read the file, if they inherit it (state/handle.h). */
#define SHARED_FILE_FLAGS (MFD_CLOEXEC | MFD_ALLOW_SEALING)
#define SHARED_FILE_MODE 0644
#define SHARED_FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Makes a file of zeros with this name in memory. -1 with the reason. */
int shared_file_make(const char *name, size_t size, struct error *error);

#endif
