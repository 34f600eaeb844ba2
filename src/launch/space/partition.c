#include "partition.h"

#include "base/log.h"
#include "base/ring.h"

#include <stdatomic.h>
#include <string.h>

static struct segment segment;

struct compiled {
	uint64_t number; /* of the compiled revision of the segment; 0: not compiled yet */
	struct decision decision;
};

#define WORDS (sizeof(struct compiled) / sizeof(uint64_t))
#define PLACES 4

_Static_assert(sizeof(struct compiled) == WORDS * sizeof(uint64_t), "copied by words");

/* Indexed by a GPU's number. The compiled partition in force is at places[current % PLACES]. */
static struct gpu_partition {
	_Atomic bool compiling; /* a thread is filling the next place */
	_Atomic uint64_t current;
	_Atomic uint64_t places[PLACES][WORDS];
} partitions[GPUS_MAX];

void partition_use(const struct segment *wanted)
{
	segment = *wanted;
	/* Compiled from an older segment. Also clears `compiling`, which a fork may have left set. */
	memset(partitions, 0, sizeof partitions);
}

/* --- the compiled partition, for all threads ---------------------------------------------------------------------- */

/* Number 0 if writers came round the ring during the copy. */
static struct compiled load_compiled(const struct gpu_partition *partition)
{
	uint64_t seen = atomic_load_explicit(&partition->current, memory_order_acquire);
	uint64_t words[WORDS];
	struct compiled compiled;

	ring_copy(words, partition->places[seen % PLACES], WORDS);
	memcpy(&compiled, words, sizeof compiled);
	if (!ring_is_whole(&partition->current, seen, PLACES))
		compiled = (struct compiled){.number = 0};
	return compiled;
}

/* Does nothing while a second thread publishes: the caller can use its own result. */
static void publish(struct gpu_partition *partition, const struct compiled *compiled)
{
	uint64_t words[WORDS];

	if (atomic_exchange_explicit(&partition->compiling, true, memory_order_acquire))
		return;
	uint64_t next = atomic_load_explicit(&partition->current, memory_order_relaxed) + 1;

	memcpy(words, compiled, sizeof words);
	ring_fill(partition->places[next % PLACES], words, WORDS);
	atomic_store_explicit(&partition->current, next, memory_order_release);
	atomic_store_explicit(&partition->compiling, false, memory_order_release);
}

/* --- compiling ---------------------------------------------------------------------------------------------------- */

/* A partition without TPCs of the GPU is ignored, and the partition before stays in force: no launch could run there
 * (facts.md, "Launches that never finish"). */
static struct decision compile_set(const struct gpu *gpu, const struct tpcset *set, const struct compiled *before)
{
	struct tpcset all = topology_all(gpu->topology);
	struct tpcset usable = tpcset_and(set, &all);
	struct decision decision = {.state = DECISION_WHOLE_GPU, .set = all};

	if (tpcset_is_empty(&usable) && before->number != 0) {
		decision = before->decision;
		decision_note(&decision, SEGMENT_NO_SUCH_TPC);
	} else if (tpcset_is_empty(&usable)) {
		decision_leave_unrestricted(&decision, SEGMENT_NO_SUCH_TPC);
	} else if (!tpcset_equal(&usable, &all)) {
		decision_restrict(&decision, &usable);
	}
	return decision;
}

/* All GPUs of unknown topology share one entry, without a PCI address: any entry of the revision may be meant. */
static struct decision compile(const struct gpu *gpu, bool is_empty, const struct segment_partition *partition,
                               const struct compiled *before)
{
	struct decision decision = {.state = DECISION_WHOLE_GPU};

	if (gpu->topology)
		decision.set = topology_all(gpu->topology);
	if (gpu->topology ? partition && !gpu->has_masks : !is_empty)
		decision_lacks_masks(&decision, gpu);
	else if (gpu->topology && partition)
		decision = compile_set(gpu, &partition->set, before);
	decision.partition = decision.set;
	return decision;
}

/* Compiles the segment's current revision. An unreadable revision leaves the former in force until the next launch. Only a
 * launch publishes, since the notes are for a launch. */
static __attribute__((noinline)) struct decision refresh(const struct gpu *gpu, struct gpu_partition *partition,
                                                         const struct compiled *before, bool is_launch)
{
	struct segment_revision revision;
	struct compiled compiled = *before;

	if (segment_read(&segment, &revision, &compiled.number)) {
		const struct segment_partition *own = revision_find_partition(&revision, gpu->pci);

		if (revision.count > 0)
			log_wake();
		compiled.decision = compile(gpu, revision.count == 0, own, before);
		if (is_launch)
			publish(partition, &compiled);
	} else {
		if (before->number == 0)
			decision_leave_unrestricted(&compiled.decision, SEGMENT_DAMAGED);
		compiled.decision.is_of_launch = true;
	}
	return compiled.decision;
}

/* `edits`: the segment's number. */
static struct decision decide_on(const struct gpu *gpu, uint64_t edits, bool is_launch)
{
	struct gpu_partition *partition = &partitions[gpu->number];
	struct compiled compiled = load_compiled(partition);

	compiled.decision.notes = 0; /* notes are of the compiling launch */
	return compiled.number == edits ? compiled.decision : refresh(gpu, partition, &compiled, is_launch);
}

void partition_decide(const struct launch *launch, struct decision *decision)
{
	*decision = decide_on(launch->gpu, launch->edits, true);
}

struct tpcset partition_on(const struct gpu *gpu)
{
	struct decision decision = decide_on(gpu, segment_revision_number(&segment), false);

	return decision.state == DECISION_RESTRICTED ? decision.partition : topology_all(gpu->topology);
}
