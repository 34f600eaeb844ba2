/*
 * memory MIB: the results of allocating so much on each GPU, in the two ways that play.c does not have, each freed again. A line
 * for each GPU; "-" is a call that this driver does not have.
 */
#include "gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Only what NVIDIA's driver has is asked, so the simulator has none of these. */
struct allocation_properties { /* CUmemAllocationProp */
	int type, handle_types;
	int location_type, location;
	void *unused;
	unsigned char flags[8];
};

#define PINNED 1
#define ON_DEVICE 1
#define GRANULARITY ((size_t)2 << 20) /* on all GPUs so far; sizes are whole mebibytes, made even */

typedef CUresult (*allocate_in_order)(CUdeviceptr *address, size_t bytes, CUstream stream);
typedef CUresult (*free_in_order)(CUdeviceptr address, CUstream stream);
typedef CUresult (*create)(uint64_t *handle, size_t bytes, const struct allocation_properties *properties, uint64_t flags);
typedef CUresult (*release)(uint64_t handle);

static void *library;

static void say(const char *what, bool is_there, CUresult result)
{
	if (is_there)
		printf(" %s %d", what, (int)result);
	else
		printf(" %s -", what);
}

static void try_in_order(size_t bytes)
{
	allocate_in_order allocate = (allocate_in_order)dlsym(library, "cuMemAllocAsync");
	free_in_order give_back = (free_in_order)dlsym(library, "cuMemFreeAsync");
	CUdeviceptr address;
	CUresult result = CUDA_SUCCESS;

	if (allocate && give_back)
		result = allocate(&address, bytes, NULL);
	say("cuMemAllocAsync", allocate && give_back, result);
	if (allocate && give_back && result == CUDA_SUCCESS) {
		give_back(address, NULL);
		cuCtxSynchronize();
	}
}

static void try_create(size_t bytes, int device)
{
	create make = (create)dlsym(library, "cuMemCreate");
	release give_back = (release)dlsym(library, "cuMemRelease");
	const struct allocation_properties properties = {.type = PINNED, .location_type = ON_DEVICE, .location = device};
	uint64_t handle;
	CUresult result = CUDA_SUCCESS;

	if (make && give_back)
		result = make(&handle, (bytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY, &properties, 0);
	say("cuMemCreate", make && give_back, result);
	if (make && give_back && result == CUDA_SUCCESS)
		give_back(handle);
}

static void look_at(int device, size_t bytes)
{
	CUcontext context;
	CUresult result = cuDevicePrimaryCtxRetain(&context, device);

	if (result == CUDA_SUCCESS)
		result = cuCtxSetCurrent(context);
	printf("GPU %d: context %d", device, (int)result);
	if (result == CUDA_SUCCESS) {
		try_in_order(bytes);
		try_create(bytes, device);
	}
	putchar('\n');
}

int main(int count, char **arguments)
{
	int devices = gpu_initialise();

	library = dlopen("libcuda.so.1", RTLD_NOW);
	for (int device = 0; device < devices && count == 2; device++)
		look_at(device, (size_t)atol(arguments[1]) << 20);
	return EXIT_SUCCESS;
}
