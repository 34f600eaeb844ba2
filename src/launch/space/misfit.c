#include "misfit.h"

#include "allowed.h"
#include "driver/functions.h"
#include "driver/gpus.h"
#include "launch/account/account.h"
#include "residency.h"

#include <stdlib.h>
#include <string.h>

static bool fails;

/* This thread's current call. */
static __thread struct {
	CUlaunchConfig refused; /* the driver gets it in place of the program's */
	CUresult result;        /* the program gets it in place of the driver's; CUDA_SUCCESS: it gets the driver's */
} current __attribute__((tls_model("initial-exec")));

void misfit_open(void)
{
	const char *text = secure_getenv(MISFIT_ENVIRONMENT);

	fails = text && strcmp(text, "fail") == 0;
}

bool misfit_wants_call(int id)
{
	return fails && calls_may_launch_at_once(id);
}

static bool is_misfit(const struct call *call, const struct launch_request *request)
{
	bool at_once = request->shape.cluster > 1 || request->shape.cooperative > 0;
	const struct gpu *gpu = at_once ? gpus_of_context(call->context) : NULL;

	if (!gpu || !gpu->topology || driver_captures(request->stream))
		return false;
	struct tpcset all = topology_all(gpu->topology), set = allowed_on(gpu);

	/* A launch that the whole GPU cannot hold either is refused by the driver itself. */
	return !residency_holds(gpu, request, &set) && residency_holds(gpu, request, &all);
}

static void refuse(const struct call *call, const struct launch_request *request)
{
	calls_refuse(call, &current.refused);
	current.result = request->shape.cooperative > 0 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
	                                                : CUDA_ERROR_INVALID_CLUSTER_SIZE;
	account_reason(SEGMENT_REFUSED);
}

void misfit_call_begins(const struct call *call)
{
	struct launch_request request;

	current.result = CUDA_SUCCESS;
	if (calls_read_request(call, &request) && is_misfit(call, &request))
		refuse(call, &request);
}

void misfit_call_ended(const struct call *call)
{
	if (current.result != CUDA_SUCCESS)
		*call->result = current.result;
	current.result = CUDA_SUCCESS;
}
