/* Stands for cuBLAS: a library of this name that asks the driver for the number of SMs. */
#include "driver/cuda.h"

#pragma GCC visibility push(default)
int cublas_sm_count(CUresult (*get_attribute)(int *value, int attribute, CUdevice device), CUdevice device);
#pragma GCC visibility pop

int cublas_sm_count(CUresult (*get_attribute)(int *value, int attribute, CUdevice device), CUdevice device)
{
	int count = 0;
	CUresult result = get_attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);

	/* Not as a tail call: this frame must be on the stack when the driver is called. */
	return result == CUDA_SUCCESS ? count : -1;
}
