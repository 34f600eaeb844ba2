#include "context.h"

#include "engine.h"
#include "pushbuffer.h"
#include "faults.h"
#include "hook.h"
#include "memory.h"
#include "module.h"
#include "rm.h"
#include "stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK 64

/* --- the stack of current contexts ------------------------------------------------------------------ */

static _Thread_local struct {
	CUcontext contexts[STACK];
	unsigned int depth;
} stack;

CUcontext context_current(void)
{
	return stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
}

static CUresult push(CUcontext context)
{
	if (stack.depth == STACK)
		fatal("more than %d contexts pushed", STACK);
	stack.contexts[stack.depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	return context ? push(context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	if (stack.depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (context)
		*context = stack.contexts[stack.depth];
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	if (stack.depth > 0)
		stack.depth--;
	return context ? push(context) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = context_current();
	return device_ready();
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	CUcontext current = context_current();

	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = current->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	struct hook_call call;

	HOOK_ENTER(&call, cuCtxSynchronize, NULL);
	while (fault(FAULT_HANG))
		pause();
	if (context_current())
		engine_wait(context_current());
	device_memory_synchronized();
	return hook_leave(&call, context_result(context_current()));
}

/* --- failing ------------------------------------------------------------------------------------------ */

static _Atomic CUresult failure;

void context_fail(CUresult error)
{
	atomic_store(&failure, error);
}

CUresult context_failure(void)
{
	return atomic_load(&failure);
}

CUresult context_result(CUcontext context)
{
	return context ? context_failure() : CUDA_ERROR_INVALID_CONTEXT;
}

/* --- making and destroying ---------------------------------------------------------------------------- */

void context_prepare(CUcontext context, CUdevice device)
{
	const struct topology *gpu = device_topology(device);

	*context = (struct CUctx_st){
		.device = device, .gpu = gpu, .family = context, .tpcs = topology_all(gpu),
		.hides_green_contexts = hook_hides_green_contexts(),
	};
}

/* Whether a context can be made on this device. */
static CUresult check(CUdevice device)
{
	CUresult result = device_ready();

	if (result == CUDA_SUCCESS && !device_topology(device))
		result = CUDA_ERROR_INVALID_DEVICE;
	if (result == CUDA_SUCCESS && fault(FAULT_NO_CONTEXT))
		result = CUDA_ERROR_DEVICE_UNAVAILABLE;
	return result == CUDA_SUCCESS ? context_failure() : result;
}

HOOKED_3(cuCtxCreate_v2, CUcontext *, context, unsigned int, flags, CUdevice, device)
{
	CUresult result = check(device);

	if (result != CUDA_SUCCESS)
		return result;
	CUcontext new = malloc(sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context_prepare(new, device);
	rm_context_created(new);
	hook_context(CONTEXT_CREATED, new);
	module_announce_drivers(new);
	push(new);
	*context = new;
	return CUDA_SUCCESS;
}

static void end(CUcontext context)
{
	hook_context(CONTEXT_DESTROY_STARTING, context);
	engine_wait_for_all();
	if (context->family == context)
		rm_context_destroyed(context);
	engine_forget(context); /* nobody can suspend it any more */
	pushbuffer_forget(context);
	memory_forget(context);
	streams_end(context);
	hook_context(CONTEXT_DESTROYED, context);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	end(context);
	if (context_current() == context)
		stack.depth--;
	free(context);
	return CUDA_SUCCESS;
}

/* --- primary contexts ----------------------------------------------------------------------------------- */

/* As in the driver, a device's primary context always has the same handle. */
static struct {
	struct CUctx_st context;
	unsigned int retained;
} primaries[TOPOLOGY_GPUS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

HOOKED_2(cuDevicePrimaryCtxRetain, CUcontext *, context, CUdevice, device)
{
	CUresult result = check(device);
	bool is_new = false;

	if (result != CUDA_SUCCESS)
		return result;
	CUcontext primary = &primaries[device].context;

	pthread_mutex_lock(&lock);
	if (primaries[device].retained++ == 0) {
		context_prepare(primary, device);
		is_new = true;
	}
	pthread_mutex_unlock(&lock);
	if (is_new) {
		rm_context_created(primary);
		hook_context(CONTEXT_CREATED, primary);
	}
	*context = primary;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active)
{
	if (!device_topology(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	*is_active = primaries[device].retained > 0;
	pthread_mutex_unlock(&lock);
	*flags = 0;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult result = CUDA_SUCCESS;
	bool is_last = false;

	if (!device_topology(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (primaries[device].retained == 0)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else
		is_last = --primaries[device].retained == 0;
	pthread_mutex_unlock(&lock);
	if (is_last)
		end(&primaries[device].context);
	return result;
}
