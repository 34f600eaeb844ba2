#include "function_sums.h"

#include <stdlib.h>
#include <string.h>

static void make_room(struct function_sums *sums, unsigned int count)
{
	struct look_function *more = count > sums->count ? realloc(sums->list, count * sizeof *more) : NULL;

	if (more) {
		memset(more + sums->count, 0, (count - sums->count) * sizeof *more);
		*sums = (struct function_sums){.count = count, .list = more};
	}
}

void function_sums_add(struct function_sums *sums, const struct look_times *times)
{
	make_room(sums, times->function_count);
	for (unsigned int i = 0; i < times->function_count && i < sums->count; i++) {
		const struct look_function *came = &times->functions[i];
		struct look_function *sum = &sums->list[i];

		sum->name = came->name;
		sum->instances += came->instances;
		sum->overruns += came->overruns;
		durations_merge(&sum->durations, &came->durations);
	}
}

void function_sums_free(struct function_sums *sums)
{
	free(sums->list);
	*sums = (struct function_sums){.count = 0};
}
