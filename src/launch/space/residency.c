#include "residency.h"

#include "driver/functions.h"
#include "gpu/topology/occupancy.h"

/* How many blocks of the kernel an SM holds, as the driver says; it says 0 for too much shared memory. Without an
 * answer, or with 0, this is 1: the launch then rather gets too much room than too little. */
static unsigned int blocks_per_sm(CUfunction function, const struct qmd_shape *shape)
{
	int blocks = 0;

	if (driver.occupancy_blocks(&blocks, function, (int)shape->threads, shape->shared_bytes) != CUDA_SUCCESS)
		blocks = 0;
	return blocks > 0 ? (unsigned int)blocks : 1;
}

bool residency_holds(const struct gpu *gpu, const struct launch_request *request, const struct tpcset *set)
{
	struct tpcset all = topology_all(gpu->topology);
	struct occupancy need =
		occupancy_of(gpu->topology, &request->shape, blocks_per_sm(request->function, &request->shape), &all);

	return occupancy_fits(&need, set);
}

/* The driver's occupancy query takes dynamic shared memory only; the descriptor has the function's static memory in it,
 * too. */
static struct qmd_shape shape_in_descriptor(const struct launch *launch)
{
	struct qmd_shape shape = qmd_shape_of(launch->gpu->family, launch->qmd);
	int fixed = 0;

	if (driver.function_get_attribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, launch->function) != CUDA_SUCCESS)
		fixed = 0;
	shape.shared_bytes -= shape.shared_bytes > (unsigned int)fixed ? (unsigned int)fixed : shape.shared_bytes;
	return shape;
}

/* Judges by the result: even if the partition seemed too small, there may have been no other TPC to add. */
static void note_where(const struct tpcset *set, const struct tpcset *theirs, struct decision *decision)
{
	if (!tpcset_is_subset(set, &decision->partition))
		decision_note(decision, SEGMENT_WIDENED);
	else if (!tpcset_is_subset(set, &decision->set))
		decision_note(decision, SEGMENT_OWN_MASK);
	if (tpcset_is_subset(set, &decision->partition) && !tpcset_is_subset(set, theirs))
		decision_note(decision, SEGMENT_GREEN_CONTEXT);
}

/* Whether the TPCs that are left while it steps aside hold the launch, without overruling anybody. */
static bool can_step_aside(const struct occupancy *need, const struct tpcset *theirs, const struct decision *decision)
{
	struct tpcset set = tpcset_and(&decision->set, theirs);

	return occupancy_fits(need, &set);
}

/* If what is left while it steps aside cannot hold the launch, it does not step aside. If the program's own mask cannot hold
 * it, it may use all of the partition. Only then is the partition widened. */
static void give_room(const struct launch *launch, const struct qmd_shape *shape, struct decision *decision)
{
	const struct gpu *gpu = launch->gpu;
	struct qmd_mask own = qmd_own_mask(gpu->family, launch->qmd);
	struct tpcset theirs = topology_enabled(gpu->topology, own.words);
	struct occupancy need = occupancy_of(gpu->topology, shape, blocks_per_sm(launch->function, shape), &theirs);

	if (decision->is_aside && !can_step_aside(&need, &theirs, decision))
		decision_stay(decision, gpu->topology);
	if (decision->state == DECISION_WHOLE_GPU)
		return;
	struct tpcset set = occupancy_find_room(&need, &decision->set, &theirs);

	if (!tpcset_is_subset(&set, &decision->set))
		set = occupancy_find_room(&need, &decision->partition, &theirs);
	note_where(&set, &theirs, decision);
	decision_restrict(decision, gpu->topology, &set);
	decision->is_exact = true;
}

/* Before Hopper, only the API call says that blocks must run at once. From Hopper on, the descriptor says it, and more
 * exactly than the call. */
void residency_decide(const struct launch *launch, struct decision *decision)
{
	if (decision->state != DECISION_RESTRICTED)
		return;
	if (!qmd_shows_must_fit(launch->gpu->family)) {
		if (launch->origin.shape.cooperative > 0)
			give_room(launch, &launch->origin.shape, decision);
	} else if (qmd_must_fit(launch->gpu->family, launch->qmd)) {
		const struct qmd_shape shape = shape_in_descriptor(launch);

		give_room(launch, &shape, decision);
	}
}
