#include "allowed.h"

static struct segment segment;

void allowed_use(const struct segment *wanted)
{
	segment = *wanted;
}

struct tpcset allowed_on(const struct gpu *gpu)
{
	struct tpcset all = topology_all(gpu->topology), set = all;
	struct segment_revision revision;
	uint64_t number;

	if (segment_read(&segment, &revision, &number)) {
		const struct segment_partition *partition = segment_find(&revision, gpu->pci);

		if (partition)
			set = tpcset_and(&partition->set, &all);
	}
	return tpcset_is_empty(&set) ? all : set;
}
