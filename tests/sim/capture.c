
#include "graph.h"
#include "hook.h"
#include "stream.h"

#include <pthread.h>
#include <stdlib.h>

struct capture {
	struct capture *next;
	CUgraph graph;
	pthread_t thread; /* that began it */
	int mode;
	bool is_valid;
};

static struct capture *captures;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static _Thread_local int mode_of_thread = CU_STREAM_CAPTURE_MODE_GLOBAL;

static bool is_mode(int mode)
{
	return mode >= 0 && mode <= CU_STREAM_CAPTURE_MODE_RELAXED;
}

CUgraph capture_of(CUstream stream)
{
	return stream_is_real(stream) && stream->capture ? stream->capture->graph : NULL;
}

/* --- what is allowed ---------------------------------------------------------------------------------------- */

/* As NVIDIA's documentation of cuThreadExchangeStreamCaptureMode has it. */
static bool forbids(const struct capture *capture)
{
	bool is_own = pthread_equal(capture->thread, pthread_self());
	bool is_global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mode_of_thread == CU_STREAM_CAPTURE_MODE_GLOBAL;

	return mode_of_thread != CU_STREAM_CAPTURE_MODE_RELAXED && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	       (is_own || is_global);
}

CUresult capture_allows(void)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	for (struct capture *capture = captures; capture; capture = capture->next) {
		if (forbids(capture)) {
			capture->is_valid = false;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode)
{
	int before = mode_of_thread;

	if (!is_mode(*mode))
		return CUDA_ERROR_INVALID_VALUE;
	mode_of_thread = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

/* --- beginning and ending ------------------------------------------------------------------------------------- */

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
	if (!stream_is_real(stream) || !is_mode(mode))
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *new = calloc(1, sizeof *new);
	CUresult result = new ? cuGraphCreate(&new->graph, 0) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS) {
		free(new);
		return result;
	}
	new->thread = pthread_self();
	new->mode = mode;
	new->is_valid = true;
	pthread_mutex_lock(&lock);
	new->next = captures;
	captures = new;
	pthread_mutex_unlock(&lock);
	stream->capture = new;
	return CUDA_SUCCESS;
}

static struct capture *take(CUstream stream)
{
	struct capture *taken = stream->capture;

	pthread_mutex_lock(&lock);
	struct capture **link = &captures;

	while (*link && *link != taken)
		link = &(*link)->next;
	if (*link)
		*link = taken->next;
	pthread_mutex_unlock(&lock);
	stream->capture = NULL;
	return taken;
}

void capture_forget(CUstream stream)
{
	struct capture *capture = take(stream);

	if (capture)
		graph_destroy(capture->graph);
	free(capture);
}

HOOKED_2(cuStreamEndCapture, CUstream, stream, CUgraph *, graph)
{
	if (!capture_of(stream))
		return CUDA_ERROR_ILLEGAL_STATE;
	struct capture *capture = take(stream);
	CUresult result = capture->is_valid ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

	*graph = capture->is_valid ? capture->graph : NULL;
	if (!capture->is_valid)
		graph_destroy(capture->graph);
	free(capture);
	return result;
}

/* Of a capture that is invalid, too, it says that there is one. */
HOOKED_2(cuStreamIsCapturing, CUstream, stream, int *, status)
{
	*status = capture_of(stream) != NULL;
	return CUDA_SUCCESS;
}
