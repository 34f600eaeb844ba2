#include "gpcs.h"

#include <stdio.h>

struct gpcs gpcs_of(const struct topology *gpu, const struct tpcset *set)
{
	struct gpcs gpcs = {.whole = {{0}}};

	for (unsigned int gpc = 0; gpc < TOPOLOGY_GPCS_MAX; gpc++) {
		struct tpcset tpcs = topology_gpc(gpu, gpc);
		struct tpcset common = tpcset_and(&tpcs, set);

		if (!tpcset_is_empty(&common))
			tpcset_add(tpcset_equal(&common, &tpcs) ? &gpcs.whole : &gpcs.part, gpc);
	}
	return gpcs;
}

const char *gpcs_format(const struct gpcs *gpcs, char text[TPCSET_TEXT])
{
	struct tpcset all = tpcset_or(&gpcs->whole, &gpcs->part);
	size_t length = 0;

	text[0] = '\0';
	for (unsigned int first = tpcset_next(&all, 0), end; first < TPCSET_MAX; first = tpcset_next(&all, end)) {
		bool whole = tpcset_has(&gpcs->whole, first);

		for (end = first; tpcset_has(whole ? &gpcs->whole : &gpcs->part, end);)
			end++;
		length += (size_t)snprintf(text + length, TPCSET_TEXT - length, "%s%u", length ? "," : "", first);
		if (end - first > 1)
			length += (size_t)snprintf(text + length, TPCSET_TEXT - length, "-%u", end - 1);
		length += (size_t)snprintf(text + length, TPCSET_TEXT - length, "%s", whole ? "" : "~");
	}
	return text;
}

bool gpcs_is_singleton(const struct topology *gpu, unsigned int tpc)
{
	unsigned int virtual_gpc = gpu->tpcs[tpc].virtual_gpc;

	return virtual_gpc != TOPOLOGY_UNKNOWN && virtual_gpc >= gpu->gpc_limit;
}
