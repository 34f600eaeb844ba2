#include "misfit.h"

#include "driver/functions.h"
#include "driver/gpus.h"
#include "residency.h"

#include <stdlib.h>
#include <string.h>

enum {
	CAPTURE_NONE = 0
};

static bool fails;
static struct segment segment;

__thread unsigned int misfit_cooperative __attribute__((tls_model("initial-exec")));

/* Of this thread's call. */
static __thread struct {
	struct qmd_shape shape;
	CUlaunchConfig refused; /* what the driver is given in place of the program's */
	CUresult result;        /* what the program is given in place of the driver's; CUDA_SUCCESS: the driver's */
} current __attribute__((tls_model("initial-exec")));

void misfit_open(void)
{
	const char *text = secure_getenv(MISFIT_ENVIRONMENT);

	fails = text && strcmp(text, "fail") == 0;
}

void misfit_use(const struct segment *wanted)
{
	segment = *wanted;
}

struct qmd_shape misfit_shape(void)
{
	return current.shape;
}

/* --- which calls --------------------------------------------------------------------------------------- */

bool misfit_wants_call_before_hopper(int id)
{
	return calls_may_launch_at_once(id);
}

bool misfit_wants_call(int id)
{
	return fails && misfit_wants_call_before_hopper(id);
}

/* --- refusing ----------------------------------------------------------------------------------------------- */

/* A launch that is captured does not run. */
static bool is_captured(CUstream stream)
{
	int status = CAPTURE_NONE;

	return driver.stream_is_capturing && driver.stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status != CAPTURE_NONE;
}

static bool is_misfit(const struct call *call, const struct launch_request *request)
{
	const struct gpu *gpu = gpus_of_context(call->context);

	if (!gpu || !gpu->topology || (request->shape.cluster <= 1 && request->shape.cooperative == 0) ||
	    is_captured(request->stream))
		return false;
	struct tpcset all = topology_all(gpu->topology), set = gpus_partition(gpu, &segment);

	/* What not even the whole GPU holds is the driver's to refuse. */
	return !fit_holds(gpu, request->function, &request->shape, &set) &&
	       fit_holds(gpu, request->function, &request->shape, &all);
}

static void refuse(const struct call *call, const struct launch_request *request)
{
	calls_refuse(call, &current.refused);
	current.result = request->shape.cooperative > 0 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
	                                                : CUDA_ERROR_INVALID_CLUSTER_SIZE;
	segment_count_reason(&segment, SEGMENT_REFUSED);
}

/* --- calls ---------------------------------------------------------------------------------------------------- */

void misfit_call_begins(const struct call *call)
{
	struct launch_request request;

	current.result = CUDA_SUCCESS;
	if (!calls_read_request(call, &request))
		return;
	if (fails && is_misfit(call, &request))
		refuse(call, &request);
	else
		misfit_cooperative = request.shape.cooperative;
	current.shape = request.shape;
}

void misfit_call_ended(const struct call *call)
{
	misfit_cooperative = 0;
	if (current.result != CUDA_SUCCESS)
		*call->result = current.result;
	current.result = CUDA_SUCCESS;
}
