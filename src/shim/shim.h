/*
 * Keeps the kernels of this process inside its partition, from when it is told to until the process ends. entry_loaded.c
 * tells it when the dynamic linker has loaded us in place of the driver; entry_attached.c when we were loaded into a
 * process that was running already.
 */
#ifndef NVTASKSET_SHIM_SHIM_H
#define NVTASKSET_SHIM_SHIM_H

#include "base/error.h"
#include "driver/hook.h"

#include <stdbool.h>

/* Makes the segment and hooks the driver, which is loaded and found by this name; `is_late` where the program may have
 * used it before. With the reason where nothing obeys the partition from here on; HOOK_FAILED, and nothing has changed.
 * Once a process. */
enum hook_state shim_set_up(const char *driver_name, bool is_late, struct error *error);

#endif
