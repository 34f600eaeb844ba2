#include "stream.h"

#include "context.h"
#include "engine.h"
#include "hook.h"
#include "memory.h"
#include "pushbuffer.h"

#include <pthread.h>
#include <stdlib.h>

typedef void host_function(void *data);

/* --- streams -------------------------------------------- */

bool stream_is_real(CUstream stream)
{
	return stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD;
}

CUcontext stream_context(CUstream stream)
{
	return stream_is_real(stream) ? stream->context : context_current();
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream streams;

/* NULL: all of the context. */
static void end(CUstream stream, CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (CUstream *at = &streams; *at;) {
		CUstream one = *at;
		bool ends = stream ? one == stream : one->context == context;

		if (ends) {
			*at = one->next;
			capture_forget(one);
			free(one);
		} else {
			at = &one->next;
		}
	}
	pthread_mutex_unlock(&lock);
}

void streams_end(CUcontext context)
{
	end(NULL, context);
}

CUresult stream_create(CUstream *stream, CUcontext context)
{
	CUstream new = calloc(1, sizeof *new);

	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	new->context = context;
	new->channel = pushbuffer_channel_of_new_stream(context);
	pthread_mutex_lock(&lock);
	new->next = streams;
	streams = new;
	pthread_mutex_unlock(&lock);
	*stream = new;
	return CUDA_SUCCESS;
}

HOOKED_2(cuStreamCreate, CUstream *, stream, unsigned int, flags)
{
	CUcontext context = context_current();

	if (flags > CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	return context ? stream_create(stream, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)
{
	*context = stream_context(stream);
	return *context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

HOOKED_1(cuStreamDestroy_v2, CUstream, stream)
{
	if (!stream_is_real(stream))
		return CUDA_ERROR_INVALID_HANDLE;
	end(stream, NULL);
	return CUDA_SUCCESS;
}

/* Here the host is called before this returns. */
HOOKED_3(cuLaunchHostFunc, CUstream, stream, host_function *, function, void *, data)
{
	if (!stream_context(stream))
		return CUDA_ERROR_INVALID_CONTEXT;
	engine_wait(stream_context(stream));
	function(data);
	return CUDA_SUCCESS;
}

HOOKED_1(cuStreamSynchronize, CUstream, stream)
{
	if (stream_context(stream))
		engine_wait(stream_context(stream));
	device_memory_synchronized();
	return context_result(stream_context(stream));
}

HOOKED_4(cuStreamWaitValue32_v2, CUstream, stream, CUdeviceptr, address, uint32_t, value, unsigned int, flags)
{
	CUcontext context = stream_context(stream);
	_Atomic uint32_t *word = memory_at(address, sizeof *word);

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!word || flags != CU_STREAM_WAIT_VALUE_EQ)
		return CUDA_ERROR_INVALID_VALUE;
	pushbuffer_write_other(context, stream);
	engine_wait_for_word(context, word, value);
	return CUDA_SUCCESS;
}

/* --- events ------------------------------------------------------------------------------------------------ */

struct CUevent_st {
	CUcontext context; /* in which it was recorded; NULL before */
	uint64_t kernel;   /* the last one then */
};

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
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
	event->context = stream_context(stream);
	event->kernel = engine_last(event->context);
	return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	return event->context && !engine_has_ended(event->context, event->kernel) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

static CUresult wait_for(CUevent event)
{
	if (event && event->context)
		engine_wait_for(event->context, event->kernel);
	return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

HOOKED_1(cuEventSynchronize, CUevent, event)
{
	CUresult result = wait_for(event);

	device_memory_synchronized();
	return result;
}

/* Here the program waits, and not the stream. */
HOOKED_3(cuStreamWaitEvent, CUstream, stream, CUevent, event, unsigned int, flags)
{
	return event && flags == 0 ? wait_for(event) : CUDA_ERROR_INVALID_VALUE;
}
