#include "costs.h"

#include "faults.h"

#include <stdlib.h>

static const uint64_t costs[] = {
#define COST_ROW(name, ns) ns,
	COSTS(COST_ROW)
#undef COST_ROW
};

uint64_t cost_ns(enum cost cost)
{
	const char *text = getenv("SIM_COSTS");
	char *end = NULL;
	unsigned long percent = text ? strtoul(text, &end, 10) : 100;

	if (end && (end == text || *end || percent > 1000))
		fatal("SIM_COSTS is no percentage up to 1000: %s", text);
	return costs[cost] * percent / 100;
}
