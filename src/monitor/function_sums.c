#include "function_sums.h"

#include <stdlib.h>

static struct monitor_function *find_function(const struct function_sums *sums, unsigned int place)
{
	unsigned int number = 0;

	while (number < sums->count && sums->list[number].place != place)
		number++;
	return number < sums->count ? &sums->list[number].all : NULL;
}

/* NULL if there is no memory. */
static struct monitor_function *add_function(struct function_sums *sums, unsigned int place)
{
	struct function_sum *more = realloc(sums->list, (sums->count + 1) * sizeof *more);

	if (!more)
		return NULL;
	sums->list = more;
	more += sums->count++;
	*more = (struct function_sum){.place = place};
	return &more->all;
}

void function_sums_add(struct function_sums *sums, const struct monitor_times *times)
{
	for (unsigned int i = 0; i < times->function_count; i++) {
		const struct monitor_function *came = &times->functions[i];
		bool has_run = came->instances > 0 || came->durations.count > 0;
		struct monitor_function *sum = has_run ? find_function(sums, i) : NULL;

		if (has_run && !sum)
			sum = add_function(sums, i);
		if (sum) {
			sum->name = came->name;
			sum->instances += came->instances;
			sum->overruns += came->overruns;
			durations_merge(&sum->durations, &came->durations);
		}
	}
}

void function_sums_free(struct function_sums *sums)
{
	free(sums->list);
	*sums = (struct function_sums){.count = 0};
}
