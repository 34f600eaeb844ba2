#include "sight.h"

#include "driver/releases.h"
#include "state/counts.h"

/* Kernels that nobody announced are seen only when they end. */
static bool wants_on(const struct counts_of_gpu *gpu, unsigned int place)
{
	static uint64_t unheard_before[COUNTS_GPUS];
	bool wants = gpu->in_flight > 0 || gpu->unheard != unheard_before[place];

	unheard_before[place] = gpu->unheard;
	return wants;
}

struct sight sight_see(void)
{
	const uint32_t blind = 1 << COUNTS_OFF | 1 << COUNTS_NO_MEMORY | 1 << COUNTS_NO_SLOTS | 1 << COUNTS_REFUSED;
	struct sight sight = {.ended = 0};
	static struct counts counts; /* large */
	uint32_t gaps;

	releases_read(&counts);
	gaps = counts.gaps;
	for (unsigned int i = 0; i < counts.count; i++) {
		bool wants = wants_on(&counts.gpus[i], i), is_known = counts.gaps == 0 && counts.gpus[i].gaps == 0;

		sight.ended += counts.gpus[i].ended;
		sight.gpus[sight.gpu_count++] = (struct sight_gpu){
			.pci = counts.gpus[i].pci,
			.wants = wants && is_known,
			.may_want = wants || !is_known,
		};
		sight.wants = sight.wants || wants;
		gaps |= counts.gpus[i].gaps;
	}
	sight.is_counted = !(gaps & blind);
	sight.wants = sight.wants || gaps != 0;
	return sight;
}
