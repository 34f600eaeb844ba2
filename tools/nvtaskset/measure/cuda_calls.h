/*
 * The functions of the driver that `measure` calls, through our library.
 */
#ifndef NVTASKSET_MEASURE_CUDA_CALLS_H
#define NVTASKSET_MEASURE_CUDA_CALLS_H

#include "base/error.h"
#include "driver/cuda.h"

#include <stddef.h>

extern struct cuda_calls {
	CUresult (*init)(unsigned int flags);
	CUresult (*error_text)(CUresult error, const char **text);
	CUresult (*device_count)(int *count);
	CUresult (*device_name)(char *name, int length, CUdevice device);
	CUresult (*device_attribute)(int *value, int attribute, CUdevice device);
	CUresult (*device_bus_id)(char *text, int length, CUdevice device);
	CUresult (*device_uuid)(CUuuid *uuid, CUdevice device);   /* of the whole GPU; may be NULL */
	CUresult (*instance_uuid)(CUuuid *uuid, CUdevice device); /* of a MIG instance, or else the GPU; may be NULL */
	CUresult (*context_create)(CUcontext *context, unsigned int flags, CUdevice device);
	CUresult (*synchronize)(void);
	CUresult (*module_load)(CUmodule *module, const void *image);
	CUresult (*module_function)(CUfunction *function, CUmodule module, const char *name);
	CUresult (*function_set)(CUfunction function, int attribute, int value);
	CUresult (*allocate)(CUdeviceptr *address, size_t bytes);
	CUresult (*copy_to)(CUdeviceptr to, const void *from, size_t bytes);
	CUresult (*copy_from)(void *to, CUdeviceptr from, size_t bytes);
	CUresult (*launch)(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	                   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,
	                   CUstream stream, void **parameters, void **extra);
	CUresult (*launch_config)(const CUlaunchConfig *config, CUfunction function, void **parameters,
	                          void **extra); /* NULL before CUDA 11.8, which has no clusters */
} cuda;

/* Opens the library, and finds them all. -1 with the reason. */
int cuda_load(const char *path, struct error *error);

/* What failed, and why: always -1. */
int cuda_fail(const char *what, CUresult result, struct error *error);

#endif
