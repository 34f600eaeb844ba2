/*
 * What the simulated GPU executes: a function in C for each kernel that it knows by name. The kernels themselves are
 * PTX text in src/gpu/kernels.h.
 */
#ifndef SIM_KERNELS_H
#define SIM_KERNELS_H

#include "api.h"

#include <stdatomic.h>

#define LAUNCH_ARGUMENTS_MAX 200 /* bytes: a copy, in a graph, is described in as many */

struct launch;
struct schedule;

typedef CUresult kernel_model(const struct launch *launch, const struct schedule *schedule);

/* NULL if the simulator knows no kernel of that name; such a kernel does nothing. */
kernel_model *kernel_model_of(const char *name);

#endif
