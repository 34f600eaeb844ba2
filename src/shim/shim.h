/*
 * Keeps the kernels of this process inside the partition, from shim_set_up until the process ends. Called by
 * entry_loaded.c when the dynamic linker has loaded us in place of the driver, by entry_attached.c in a process that
 * was already running, and by libsmctrl.
 */
#ifndef NVTASKSET_SHIM_SHIM_H
#define NVTASKSET_SHIM_SHIM_H

#include "base/error.h"
#include "driver/hook.h"

#include <stdbool.h>

/* Makes the segment and hooks the driver, which is loaded as `driver_name`. `is_late`: the program may have used the
 * driver before. `gpus` describes the GPUs (driver/gpus.h), or is NULL. The reason is set unless the result is
 * HOOK_SUBSCRIBED. After HOOK_FAILED nothing has changed. Once in a process. */
enum hook_state shim_set_up(const char *driver_name, bool is_late, const char *gpus, struct error *error);

#endif
