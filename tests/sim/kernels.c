#include "module.h"

#include "gpu_time.h"
#include "launch.h"
#include "memory.h"
#include "scheduler.h"

#include <string.h>

static uint64_t argument64(const struct launch *launch, unsigned int offset)
{
	uint64_t value;

	memcpy(&value, launch->arguments + offset, sizeof value);
	return value;
}

/* where(uint32_t *sms, uint64_t cycles): each block writes the SM that it ran on. */
static CUresult where(const struct launch *launch, const struct schedule *schedule)
{
	size_t blocks = launch_blocks(launch);
	uint32_t *sms = memory_at(argument64(launch, 0), blocks * sizeof *sms);

	if (!sms)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t block = 0; block < blocks; block++)
		sms[block] = schedule_sm(schedule, block);
	return CUDA_SUCCESS;
}

/* span(uint64_t *stays, uint64_t ns), of bench/: each block writes when it began and ended, and its SM. As many blocks
 * run at once as there is room for, from the time 1 on, which is that of every launch. */
static CUresult span(const struct launch *launch, const struct schedule *schedule)
{
	size_t blocks = launch_blocks(launch), at_once = (size_t)schedule->sm_count * schedule->blocks_per_sm;
	uint64_t ns = argument64(launch, 8);
	struct stay {
		uint64_t begin, end, sm;
	} *stays = memory_at(argument64(launch, 0), blocks * sizeof *stays);

	if (!stays)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t block = 0; block < blocks; block++) {
		uint64_t begin = 1 + block / at_once * ns;

		stays[block] = (struct stay){begin, begin + ns, schedule_sm(schedule, block)};
	}
	return CUDA_SUCCESS;
}

/* last(uint64_t *looks, uint64_t ns), of tests/gpu/times.c: each block looks at the clock when it begins, and after so
 * long. All of them run at once. */
static CUresult last(const struct launch *launch, const struct schedule *schedule)
{
	size_t blocks = launch_blocks(launch);
	uint64_t ns = argument64(launch, 8);
	uint64_t *looks = memory_at(argument64(launch, 0), 2 * blocks * sizeof *looks);

	if (!looks)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	gpu_time_last(ns);
	uint64_t end = gpu_time_end();

	for (size_t block = 0; block < blocks; block++) {
		looks[2 * block] = gpu_time_begin();
		looks[2 * block + 1] = end;
	}
	return CUDA_SUCCESS;
}

static const struct {
	const char *name;
	kernel_model *model;
} models[] = {
	{"where", where},
	{"span", span},
	{"last", last},
};

kernel_model *kernel_model_of(const char *name)
{
	kernel_model *found = NULL;

	for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
		if (strcmp(models[i].name, name) == 0)
			found = models[i].model;
	}
	return found;
}
