#include "function_sums.h"

#include <stdlib.h>
#include <string.h>

static bool has_name(const struct function_sum *function, const char *name)
{
	return name && function->name ? strcmp(name, function->name) == 0 : name == function->name;
}

static struct function_sum *find(const struct function_sums *sums, const char *name)
{
	unsigned int place = 0;

	while (place < sums->count && !has_name(&sums->list[place], name))
		place++;
	return place < sums->count ? &sums->list[place] : NULL;
}

/* NULL if there is no memory. */
static struct function_sum *add(struct function_sums *sums, const char *name)
{
	struct function_sum *more = realloc(sums->list, (sums->count + 1) * sizeof *more);
	char *copy = name ? strdup(name) : NULL;

	sums->list = more ? more : sums->list;
	if (!more || (name && !copy)) {
		free(copy);
		return NULL;
	}
	more += sums->count++;
	*more = (struct function_sum){.name = copy};
	return more;
}

void function_sums_add(struct function_sums *sums, const struct look_times *times)
{
	for (unsigned int i = 0; i < times->function_count; i++) {
		const struct look_function *came = &times->functions[i];
		struct function_sum *function = find(sums, came->name);

		if (!function && came->instances > 0)
			function = add(sums, came->name);
		if (function) {
			function->instances += came->instances;
			function->overruns += came->overruns;
			durations_merge(&function->durations, &came->durations);
		}
	}
}

void function_sums_free(struct function_sums *sums)
{
	for (unsigned int i = 0; i < sums->count; i++)
		free(sums->list[i].name);
	free(sums->list);
	*sums = (struct function_sums){.count = 0};
}
