/*
 * Who enforces libsmctrl's masks: the library of ours that is in this process already, because nvtaskset started it or
 * has attached to it; otherwise a copy of it that libsmctrl carries.
 */
#ifndef NVTASKSET_SMCTRL_READY_H
#define NVTASKSET_SMCTRL_READY_H

#include "shim/app_masks.h"

/* What sets a mask; NULL where nobody hears of launches. The first call finds it, and says on standard error what stands
 * in the way. */
app_masks_set *ready(void);

#endif
