/*
 * The exports of the simulated driver library: the functions of tests/gpu/support/cuda_api.h and a mark that tells a
 * test that this is the simulator.
 */
#ifndef SIM_API_H
#define SIM_API_H

#include "../gpu/support/cuda_api.h"

#pragma GCC visibility push(default)

#define API_DECLARE(name, id, parameters) CUresult name parameters;
CUDA_API(API_DECLARE)
#undef API_DECLARE

extern const char simulated_gpu[];

#pragma GCC visibility pop

/* The numbers of the callbacks in domain 6. */
enum api_id {
#define API_ID(name, id, parameters) API_ID_##name = (id),
	CUDA_API(API_ID)
#undef API_ID
};

#endif
