#include "limited.h"

#include "../../cases.h"
#include "state/segment/edit.h"
#include "state/segment/memory.h"

void limited_to(uint64_t bytes)
{
	struct segment segment = gpu_own_segment();
	const struct segment_revision wanted = {.memory = bytes};
	struct error error;

	assert_done(segment_change(&segment, &wanted, NULL, &error));
	segment_close(&segment);
}

size_t limited_free(void)
{
	size_t free_bytes, total;

	gpu_check(cuMemGetInfo_v2(&free_bytes, &total));
	return free_bytes;
}

uint64_t limited_in_use(const struct gpu_under_test *gpu)
{
	struct segment segment = gpu_own_segment();
	uint64_t used = segment_read_memory_use(&segment, gpu->topology->pci).used;

	segment_close(&segment);
	return used;
}
