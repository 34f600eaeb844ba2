/*
 * Finds the library that enforces libsmctrl's masks: ours, if nvtaskset has started the process or attached to it;
 * otherwise the copy of it that is part of libsmctrl.
 */
#ifndef NVTASKSET_SMCTRL_READY_H
#define NVTASKSET_SMCTRL_READY_H

#include "launch/space/app_masks.h"

/* The function that sets a mask; NULL if launches will never be announced. The first call finds it, and if that fails,
 * says why on standard error. */
app_masks_set *ready(void);

#endif
