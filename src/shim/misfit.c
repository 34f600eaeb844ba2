#include "misfit.h"

#include "driver/functions.h"
#include "driver/gpus.h"
#include "residency.h"

#include <stdlib.h>
#include <string.h>

enum {
	CALL_LAUNCH_COOPERATIVE = 477,
	CALL_LAUNCH_COOPERATIVE_PER_THREAD = 478,
	CALL_LAUNCH_EX = 652,
	CALL_LAUNCH_EX_PER_THREAD = 653
};

enum {
	CAPTURE_NONE = 0
};

/* The arguments of the calls, as the driver has them. */
struct cooperative_arguments {
	CUfunction function;
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int dynamic_bytes;
	CUstream stream;
};

struct config_arguments {
	const CUlaunchConfig *config;
	CUfunction function;
};

/* What both ask for. */
struct wish {
	CUfunction function;
	CUstream stream;
	struct qmd_shape shape; /* shared memory: of what is asked for at the launch alone */
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

static bool is_cooperative(int call)
{
	return call == CALL_LAUNCH_COOPERATIVE || call == CALL_LAUNCH_COOPERATIVE_PER_THREAD;
}

bool misfit_wants_call_before_hopper(int call)
{
	return is_cooperative(call) || call == CALL_LAUNCH_EX || call == CALL_LAUNCH_EX_PER_THREAD;
}

bool misfit_wants_call(int call)
{
	return fails && misfit_wants_call_before_hopper(call);
}

/* --- what is asked for ----------------------------------------------------------------------------------- */

static struct wish wish_of_list(const struct cooperative_arguments *arguments)
{
	const unsigned int *grid = arguments->grid, *block = arguments->block;

	return (struct wish){
		.function = arguments->function,
		.stream = arguments->stream,
		.shape = {.cluster = 1,
	                  .cooperative = grid[0] * grid[1] * grid[2],
	                  .threads = block[0] * block[1] * block[2],
	                  .shared_bytes = arguments->dynamic_bytes},
	};
}

static struct wish wish_of_config(const struct config_arguments *arguments)
{
	const CUlaunchConfig *config = arguments->config;
	struct wish wish = {
		.function = arguments->function,
		.stream = config->hStream,
		.shape = {.cluster = fit_cluster_of(config),
	                  .threads = config->blockDimX * config->blockDimY * config->blockDimZ,
	                  .shared_bytes = config->sharedMemBytes},
	};

	for (unsigned int i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && config->attrs[i].value.cooperative)
			wish.shape.cooperative = config->gridDimX * config->gridDimY * config->gridDimZ;
	}
	return wish;
}

/* --- refusing ----------------------------------------------------------------------------------------------- */

/* A launch that is captured does not run. */
static bool is_captured(CUstream stream)
{
	int status = CAPTURE_NONE;

	return driver.stream_is_capturing && driver.stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
	       status != CAPTURE_NONE;
}

static bool is_misfit(const struct hook_call *call, const struct wish *wish)
{
	const struct gpu *gpu = gpus_of_context(call->context);

	if (!gpu || !gpu->topology || (wish->shape.cluster <= 1 && wish->shape.cooperative == 0) ||
	    is_captured(wish->stream))
		return false;
	struct tpcset all = topology_all(gpu->topology), set = gpus_partition(gpu, &segment);

	/* What not even the whole GPU holds is the driver's to refuse. */
	return !fit_holds(gpu, wish->function, &wish->shape, &set) &&
	       fit_holds(gpu, wish->function, &wish->shape, &all);
}

static void refuse(const struct hook_call *call, const struct wish *wish)
{
	if (is_cooperative(call->id)) {
		((struct cooperative_arguments *)call->arguments)->grid[0] = 0;
	} else {
		struct config_arguments *arguments = (struct config_arguments *)call->arguments;

		current.refused = *arguments->config;
		current.refused.gridDimX = 0;
		arguments->config = &current.refused;
	}
	current.result = wish->shape.cooperative > 0 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
	                                             : CUDA_ERROR_INVALID_CLUSTER_SIZE;
	segment_count_reason(&segment, SEGMENT_REFUSED);
}

/* --- calls ---------------------------------------------------------------------------------------------------- */

void misfit_call_begins(const struct hook_call *call)
{
	const struct config_arguments *by_config = (const struct config_arguments *)call->arguments;

	current.result = CUDA_SUCCESS;
	if (!is_cooperative(call->id) && (!by_config->config || by_config->config->numAttrs == 0))
		return;
	struct wish wish = is_cooperative(call->id)
	                           ? wish_of_list((const struct cooperative_arguments *)call->arguments)
	                           : wish_of_config(by_config);

	if (fails && is_misfit(call, &wish))
		refuse(call, &wish);
	else
		misfit_cooperative = wish.shape.cooperative;
	current.shape = wish.shape;
}

void misfit_call_ended(const struct hook_call *call)
{
	misfit_cooperative = 0;
	if (current.result != CUDA_SUCCESS)
		*call->result = current.result;
	current.result = CUDA_SUCCESS;
}
