#include "sight.h"

#include "driver/releases.h"
#include "state/counts.h"

struct sight sight_see(void)
{
	const uint32_t blind = 1 << COUNTS_OFF | 1 << COUNTS_NO_MEMORY | 1 << COUNTS_NO_SLOTS | 1 << COUNTS_REFUSED;
	struct sight sight = {.ended = 0};
	static struct counts counts; /* large */
	static uint64_t unheard_before;
	uint64_t in_flight = 0, unheard = 0;

	releases_read(&counts);
	uint32_t gaps = counts.gaps;

	for (unsigned int i = 0; i < counts.count; i++) {
		sight.ended += counts.gpus[i].ended;
		unheard += counts.gpus[i].unheard;
		in_flight += counts.gpus[i].in_flight;
		gaps |= counts.gpus[i].gaps;
	}
	sight.is_counted = !(gaps & blind);
	/* Kernels that nobody announced are seen only when they end. */
	sight.wants = in_flight > 0 || gaps != 0 || unheard != unheard_before;
	unheard_before = unheard;
	return sight;
}
