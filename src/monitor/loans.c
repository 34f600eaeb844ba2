#include "monitor.h"

#include "base/extremes.h"

struct loan_launch loans_launch(const struct monitor_gpu *gpu, const struct times_interval *kernel)
{
	return (struct loan_launch){gpu->pci, kernel->launched, sum_u64(kernel->end, gpu->error_ns)};
}

void loans_add(struct loans *loans, const struct monitor_times *times)
{
	for (unsigned int gpu = 0; gpu < times->gpu_count; gpu++) {
		for (size_t i = 0; i < times->gpus[gpu].interval_count; i++) {
			const struct times_interval *interval = &times->gpus[gpu].intervals[i];

			if (interval->is_borrowed)
				loans->list[loans->count++ % LOANS_MAX] = loans_launch(&times->gpus[gpu], interval);
		}
	}
}

static uint64_t oldest(const struct loans *loans)
{
	return loans->count > LOANS_MAX ? loans->count - LOANS_MAX : 0;
}

/* The number of the first launch at this time, or later. The list is in the order of launches, or nearly. */
static uint64_t find_launch(const struct loans *loans, uint64_t time)
{
	uint64_t first = oldest(loans), end = loans->count;

	while (first < end) {
		uint64_t middle = first + (end - first) / 2;

		if (loans->list[middle % LOANS_MAX].launched_ns < time)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

uint64_t loans_wait(const struct loans *loans, const struct loan_launch *lender)
{
	uint64_t number = find_launch(loans, lender->launched_ns), until = lender->launched_ns;

	for (int i = 0; i < LOANS_IN_FLIGHT && number-- > oldest(loans); i++) {
		const struct loan_launch *borrowed = &loans->list[number % LOANS_MAX];

		if (pci_address_equal(borrowed->pci, lender->pci))
			until = max_u64(until, borrowed->ended_ns);
	}
	return until - lender->launched_ns;
}
