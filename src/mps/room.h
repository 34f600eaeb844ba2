/*
 * How many clients an MPS server has room for (facts.md, "MPS"; the paper, section 5; hardware.md).
 *
 * A client takes CUDA_DEVICE_MAX_CONNECTIONS hardware channels (MPS's default is 2, CUDA's without MPS 8), and a
 * server has a limited number of them. If there is one client too many, it fails when it makes its context, with an
 * error that does not say why. So we count first.
 */
#ifndef NVTASKSET_MPS_ROOM_H
#define NVTASKSET_MPS_ROOM_H

#include "request.h"

#define MPS_CONNECTIONS_ENVIRONMENT "CUDA_DEVICE_MAX_CONNECTIONS"

/* How many channels a program gets: from its request, or from the environment. */
unsigned int mps_connections(const struct mps_request *request);

/* How many clients a server has room for on one GPU, if each takes `connections` channels. Measured on an H200, driver
 * 580.159, for 1, 2, 3, 4, 8, 12, 16 and 32. */
unsigned int mps_capacity(unsigned int connections);

#endif
