#include "work.h"

#include "driver/releases.h"
#include "state/kernels/counts_read.h"

/* With one of these gaps, nobody sees when kernels end. */
#define BLIND (1 << COUNTS_OFF | 1 << COUNTS_NO_MEMORY | 1 << COUNTS_NO_SLOTS | 1 << COUNTS_REFUSED)

/* GPUs only come. */
static struct work_on_gpu *gpu_at(struct work *work, unsigned int number, struct pci_address pci)
{
	if (number >= work->gpu_count) {
		work->gpus[number] = (struct work_on_gpu){.pci = pci};
		work->gpu_count = number + 1;
	}
	return &work->gpus[number];
}

static void add(struct work *work, const struct work_on_gpu *gpu, const struct counts_of_gpu *counts)
{
	bool may_want = counts->in_flight > 0 || !gpu->demand.is_known;

	work->ended += counts->ended;
	work->is_counted = work->is_counted && !(counts->gaps & BLIND);
	work->wants = work->wants || may_want;
	work->gpus_wanting += may_want;
	work->is_present = work->is_present || may_want || demand_is_present(&gpu->demand);
	work->pauses = work->pauses && demand_pauses(&gpu->demand);
}

void work_look(struct work *work, uint64_t now)
{
	static struct counts counts; /* large */

	releases_read(&counts);
	work->ended = 0;
	work->gpus_wanting = 0;
	work->is_counted = !(counts.gaps & BLIND);
	work->wants = counts.gaps != 0;
	work->is_present = work->wants;
	work->pauses = true;
	for (unsigned int i = 0; i < counts.count; i++) {
		struct work_on_gpu *gpu = gpu_at(work, i, counts.gpus[i].pci);
		struct counts_of_gpu there = counts.gpus[i];

		there.gaps |= counts.gaps;
		demand_note(&gpu->demand, now, &there);
		add(work, gpu, &there);
	}
}
