/* Plays a part of cuBLAS: a library of this name that asks the driver how many SMs there are. */
#include "driver/cuda.h"

#pragma GCC visibility push(default)
int cublas_sm_count(CUresult (*get_attribute)(int *value, int attribute, CUdevice device), CUdevice device);
#pragma GCC visibility pop

int cublas_sm_count(CUresult (*get_attribute)(int *value, int attribute, CUdevice device), CUdevice device)
{
	int count = 0;
	CUresult result = get_attribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);

	/* Not as a last act: this frame must be there when the driver is called. */
	return result == CUDA_SUCCESS ? count : -1;
}
