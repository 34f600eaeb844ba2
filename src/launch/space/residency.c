#include "residency.h"

#include "driver/contexts.h"
#include "driver/functions.h"
#include "launch/account/account.h"
#include "partition.h"

#include <stdlib.h>
#include <string.h>

/* The blocks of the kernel that an SM holds, as the driver says. 1 without an answer, or with 0 (too much shared
 * memory): rather too much room than too little. Only a cooperative grid must be there as a whole; otherwise only a
 * cluster. So launches with clusters do not ask the driver. */
static unsigned int blocks_per_sm(CUfunction function, const struct qmd_shape *shape)
{
	int blocks = 0;

	if (shape->cooperative > 0 &&
	    driver.occupancy_blocks(&blocks, function, (int)shape->threads, shape->shared_bytes) != CUDA_SUCCESS)
		blocks = 0;
	return blocks > 0 ? (unsigned int)blocks : 1;
}

struct occupancy residency_need(const struct topology *topology, const struct launch_request *request)
{
	struct tpcset all = topology_all(topology);

	return occupancy_of(topology, &request->shape, blocks_per_sm(request->function, &request->shape), &all);
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* Before Hopper, only the API call says that blocks must run at once. From Hopper on, the descriptor says so more
 * exactly. */
bool residency_must_fit(const struct launch *launch)
{
	const struct qmd_family *family = launch->gpu->family;

	return qmd_shows_must_fit(family) ? qmd_must_fit(family, launch->qmd) : launch->frame.shape.cooperative > 0;
}

/* The driver's occupancy query takes the shared memory without the function's own, unlike the descriptor. */
static struct qmd_shape shape_of(const struct launch *launch)
{
	unsigned int own = 0;
	int fixed = 0;

	if (!qmd_shows_must_fit(launch->gpu->family))
		return launch->frame.shape;
	struct qmd_shape shape = qmd_shape_of(launch->gpu->family, launch->qmd);

	if (shape.cooperative > 0 && driver.function_get_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
	                                                           launch->function) == CUDA_SUCCESS)
		own = (unsigned int)fixed;
	shape.shared_bytes -= shape.shared_bytes > own ? own : shape.shared_bytes;
	return shape;
}

/* Judges by the result: even if the partition seemed too small, there may have been no further TPC. */
static void note_where(const struct tpcset *set, const struct tpcset *theirs, struct decision *decision)
{
	if (!tpcset_is_subset(set, &decision->partition))
		decision_note(decision, SEGMENT_WIDENED);
	else if (!tpcset_is_subset(set, &decision->set))
		decision_note(decision, SEGMENT_OWN_MASK);
	if (tpcset_is_subset(set, &decision->partition) && !tpcset_is_subset(set, theirs))
		decision_note(decision, SEGMENT_GREEN_CONTEXT);
}

/* A launch that the TPCs left cannot hold does not yield. A launch that the program's own mask cannot hold gets all of
 * the partition. Only then is the partition widened. */
static void give_room(const struct launch *launch, const struct qmd_shape *shape, struct decision *decision)
{
	const struct topology *topology = launch->gpu->topology;
	struct qmd_mask own = qmd_own_mask(launch->gpu->family, launch->qmd);
	struct tpcset theirs = topology_enabled(topology, own.words);
	struct occupancy need = occupancy_of(topology, shape, blocks_per_sm(launch->function, shape), &theirs);
	struct tpcset left = tpcset_and(&decision->set, &theirs);

	if (decision->is_yielding && !occupancy_fits(&need, &left))
		decision_stay(decision, topology);
	if (decision->state == DECISION_WHOLE_GPU)
		return;
	struct tpcset set = occupancy_find_room(&need, &decision->set, &theirs);

	if (!tpcset_is_subset(&set, &decision->set))
		set = occupancy_find_room(&need, &decision->partition, &theirs);
	/* The driver disables TPCs without room for a cluster. A green context has fewer TPCs. */
	decision->has_own_mask = decision->has_own_mask || !tpcset_is_subset(&need.possible, &theirs);
	note_where(&set, &theirs, decision);
	decision_restrict(decision, &set);
	decision->is_exact = true;
}

void residency_decide(const struct launch *launch, struct decision *decision)
{
	if (decision->state == DECISION_RESTRICTED && residency_must_fit(launch)) {
		struct qmd_shape shape = shape_of(launch);

		give_room(launch, &shape, decision);
	}
}

/* --- calls that fail ---------------------------------------------------------------------------------------------- */

static bool fails;

void residency_open(void)
{
	const char *text = secure_getenv(MISFIT_ENVIRONMENT);

	fails = text && strcmp(text, "fail") == 0;
}

bool residency_wants_call(int id)
{
	return fails && calls_may_launch_at_once(id);
}

/* NULL: the context of the launch is not known. A misfit is widened then. */
static CUcontext context_of(const struct call *call, CUstream stream)
{
	bool is_of_stream = calls_launch_on_devices(call->id);
	CUcontext context = is_of_stream ? NULL : call->context;

	if (is_of_stream && driver.stream_get_context)
		driver.stream_get_context(stream, &context);
	return context;
}

/* The driver itself refuses a launch that the whole GPU cannot hold. */
static bool is_misfit(CUcontext context, const struct launch_request *request)
{
	const struct gpu *gpu = context ? contexts_gpu(context) : NULL;
	bool is = false;

	if (gpu && gpu->topology && !driver_captures(request->stream)) {
		struct tpcset set = partition_on(gpu);
		struct occupancy need = residency_need(gpu->topology, request);

		is = !occupancy_fits(&need, &set) && occupancy_fits(&need, &need.possible);
	}
	return is;
}

/* A call for several devices launches everywhere, or nowhere. */
void residency_call_begins(const struct call *call)
{
	unsigned int count = calls_launch_count(call);
	struct launch_request request;
	bool fits = true;

	for (unsigned int i = 0; i < count && fits; i++)
		fits = !calls_read_request(call, i, &request) ||
		       !is_misfit(context_of(call, request.stream), &request);
	call->frame->refusal = CUDA_SUCCESS;
	if (!fits) {
		calls_refuse(call);
		call->frame->refusal = request.shape.cooperative > 0 ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
		                                                     : CUDA_ERROR_INVALID_CLUSTER_SIZE;
		account_reason(SEGMENT_REFUSED);
	}
}

void residency_call_ended(const struct call *call)
{
	if (call->frame->refusal != CUDA_SUCCESS) {
		*call->result = call->frame->refusal;
		call->frame->fitted.cluster = 0;
	}
	call->frame->refusal = CUDA_SUCCESS;
}
