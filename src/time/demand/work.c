#include "work.h"

#include "driver/releases.h"

/* Gaps that hide the ends of kernels. */
#define BLIND (1 << COUNTS_OFF | 1 << COUNTS_NO_MEMORY | 1 << COUNTS_NO_SLOTS | 1 << COUNTS_REFUSED)

void work_look(struct work *work, uint64_t now)
{
	static struct counts counts; /* large */

	releases_read(&counts);
	work->ended = 0;
	work->is_counted = !(counts.gaps & BLIND);
	work->view = (struct rules_view){.wants = counts.gaps != 0, .is_present = counts.gaps != 0, .pauses = true};
	work->gpu_count = counts.count;
	/* No GPU is ever removed: each keeps the number. */
	for (unsigned int i = 0; i < counts.count; i++) {
		struct work_on_gpu *gpu = &work->gpus[i];
		struct counts_of_gpu there = counts.gpus[i];

		gpu->pci = there.pci;
		there.gaps |= counts.gaps;
		demand_note(&gpu->demand, now, &there);
		bool may_want = there.in_flight > 0 || !gpu->demand.is_known;

		work->ended += there.ended;
		work->is_counted = work->is_counted && !(there.gaps & BLIND);
		work->view.wants = work->view.wants || may_want;
		work->view.gpus_wanting += may_want;
		work->view.is_present = work->view.is_present || may_want || demand_is_present(&gpu->demand);
		work->view.pauses = work->view.pauses && demand_pauses(&gpu->demand);
	}
}
