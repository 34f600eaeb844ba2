#include "plan.h"

#include "base/shared_file.h"
#include "state/segment/edit.h"
#include "state/segment/layout.h"

/* splitmix64 */
uint64_t plan_random(uint64_t *state)
{
	uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return bits ^ bits >> 31;
}

/* All TPCs, or half of them, a quarter, and so on down to single ones. */
static struct tpcset random_set(const struct topology *gpu, uint64_t number)
{
	struct tpcset all = topology_all(gpu), set = all;
	uint64_t state = number;
	unsigned int halvings = (unsigned int)(plan_random(&state) % 7);

	for (unsigned int i = 0; i < halvings; i++) {
		for (unsigned int word = 0; word < TPCSET_WORDS; word++)
			set.words[word] &= plan_random(&state);
	}
	return tpcset_is_empty(&set) ? all : set;
}

/* Revision n changes GPU n % gpu_count. */
struct tpcset plan_set(const struct plan *plan, unsigned int gpu, uint64_t number)
{
	while (number > plan->start && number % plan->gpu_count != gpu)
		number--;
	return number > plan->start ? random_set(&plan->gpus[gpu], number) : topology_all(&plan->gpus[gpu]);
}

uint64_t plan_first(const struct segment *segment)
{
	uint64_t number = segment_revision_number(segment);

	return number - segment_raised(segment);
}

uint64_t plan_last(const struct segment *segment)
{
	uint64_t raised = segment_raised(segment);

	return segment_revision_number(segment) - raised;
}

/* Under the lock, neither the number nor how often it was raised changes. */
bool plan_is_kept(const struct plan *plan, const struct segment *segment)
{
	struct segment_revision revision;
	uint64_t number;
	bool kept = lock_take(segment->file, NULL) == 0 && segment_read(segment, &revision, &number);

	for (unsigned int gpu = 0; gpu < plan->gpu_count && kept; gpu++) {
		struct tpcset planned = plan_set(plan, gpu, number - segment_raised(segment)), all = topology_all(&plan->gpus[gpu]);
		const struct segment_partition *found = segment_find(&revision, plan->gpus[gpu].pci);

		kept = tpcset_equal(&planned, found ? &found->set : &all);
	}
	lock_give_back(segment->file);
	return kept;
}

/* The number must not change before the edit. So we take the lock that segment_change takes; it belongs to the same file
 * description, so segment_change does not wait. */
int plan_edit(const struct plan *plan, struct segment *segment, struct error *error)
{
	if (lock_take(segment->file, error) < 0)
		return -1;
	uint64_t next = plan_last(segment) + 1;
	unsigned int gpu = (unsigned int)(next % plan->gpu_count);
	const struct segment_partition partition = {.pci = plan->gpus[gpu].pci, .set = plan_set(plan, gpu, next)};

	return segment_change(segment, &(struct segment_revision){.count = 1, .partitions[0] = partition}, NULL, error);
}
