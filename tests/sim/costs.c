#include "costs.h"

#include "faults.h"

#include <stdlib.h>

uint64_t cost_ns(unsigned int cost)
{
	const char *text = getenv("SIM_COSTS");
	char *end = NULL;
	unsigned long percent = text ? strtoul(text, &end, 10) : 100;

	if (end && (end == text || *end || percent > 1000))
		fatal("SIM_COSTS is no percentage up to 1000: %s", text);
	return (uint64_t)cost * percent / 100;
}
