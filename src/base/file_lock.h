/*
 * The lock that editors of a partition exclude each other by: on an open file, so that the kernel drops it when its holder
 * ends. It excludes open files from each other, not two threads that share one.
 */
#ifndef NVTASKSET_FILE_LOCK_H
#define NVTASKSET_FILE_LOCK_H

#include "error.h"

/* Takes the lock of a file that is open for writing. It is held until lock_give_back, or until the file is closed. Waits a
 * bounded time, all of it paid from the open purse (base/purse.h). -1 with the reason. */
int lock_take(int file, struct error *error);
void lock_give_back(int file);

#endif
