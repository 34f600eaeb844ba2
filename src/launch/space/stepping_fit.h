/*
 * Whether a launch can step aside (stepping.h). One whose blocks must run at once in more TPCs than are left cannot: it has to wait
 * for the higher one, as where nothing is left (time/gate/turnstile.h), and then gets what it would have got otherwise
 * (residency.h).
 *
 * What the API call does not say is not known: clusters of a size that the kernel was compiled with, nodes of graphs.
 */
#ifndef NVTASKSET_LAUNCH_SPACE_STEPPING_FIT_H
#define NVTASKSET_LAUNCH_SPACE_STEPPING_FIT_H

#include "driver/calls.h"
#include "driver/gpus.h"

#include <stdbool.h>

/* In the program's threads, when a call begins that launches on this GPU. True where nobody steps aside. */
bool stepping_fits(const struct call *call, const struct gpu *gpu);

#endif
