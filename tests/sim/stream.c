#include "stream.h"

#include "capture.h"
#include "context.h"
#include "hook.h"

#include <stdlib.h>
#include <time.h>

/* --- streams: their work is done when it has been submitted -------------------------------------------- */

bool stream_is_real(CUstream stream)
{
	return stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

CUcontext stream_context(CUstream stream)
{
	return stream_is_real(stream) ? stream->context : context_current();
}

CUresult stream_create(CUstream *stream, CUcontext context)
{
	CUstream new = calloc(1, sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->context = context;
	*stream = new;
	return CUDA_SUCCESS;
}

static CUresult create(CUstream *stream, unsigned int flags)
{
	CUcontext context = context_current();

	if (flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return context ? stream_create(stream, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	struct {
		CUstream *stream;
		unsigned int flags;
	} arguments = {stream, flags};
	struct hook_call call;

	HOOK_ENTER(&call, cuStreamCreate, &arguments);
	return hook_leave(&call, create(arguments.stream, arguments.flags));
}

static CUresult destroy(CUstream stream)
{
	if (!stream_is_real(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	capture_forget(stream);
	free(stream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
	struct {
		CUstream stream;
	} arguments = {stream};
	struct hook_call call;

	HOOK_ENTER(&call, cuStreamDestroy_v2, &arguments);
	return hook_leave(&call, destroy(arguments.stream));
}

CUresult cuStreamSynchronize(CUstream stream)
{
	return context_result(stream_context(stream));
}

/* --- events ------------------------------------------------------------------------------------------------ */

struct CUevent_st {
	struct timespec recorded;
};

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
	(void)flags;
	if (!context_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	*event = calloc(1, sizeof **event);
	return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
	free(event);
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
	if (!stream_context(stream))
		return CUDA_ERROR_INVALID_CONTEXT;
	clock_gettime(CLOCK_MONOTONIC, &event->recorded);
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventSynchronize(CUevent event)
{
	return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
	double seconds = (double)(end->recorded.tv_sec - start->recorded.tv_sec);

	*milliseconds = (float)(seconds * 1e3 + (double)(end->recorded.tv_nsec - start->recorded.tv_nsec) / 1e6);
	return CUDA_SUCCESS;
}
