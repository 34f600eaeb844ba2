/* The simulated GPUs: those of a topology file. */
#ifndef SIM_DEVICE_H
#define SIM_DEVICE_H

#include "api.h"
#include "gpu/topology/topology.h"

/* CUDA_SUCCESS once this process has called cuInit; a child of fork has not, even if its parent has. */
CUresult device_ready(void);

/* NULL if there is no such device. */
const struct topology *device_topology(CUdevice device);

#endif
