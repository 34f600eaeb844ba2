#include "kernels.h"

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

static uint32_t argument32(const struct launch *launch, unsigned int offset)
{
	uint32_t value;

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
		sms[block] = schedule_place(schedule, block).sm;
	return CUDA_SUCCESS;
}

/* where_cluster(uint32_t (*places)[2], uint64_t cycles): each block writes its SM and its cluster. */
static CUresult where_cluster(const struct launch *launch, const struct schedule *schedule)
{
	size_t blocks = launch_blocks(launch);
	uint32_t(*places)[2] = memory_at(argument64(launch, 0), blocks * sizeof *places);

	if (!places)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t block = 0; block < blocks; block++) {
		struct place place = schedule_place(schedule, block);

		places[block][0] = place.sm;
		places[block][1] = place.cluster;
	}
	return CUDA_SUCCESS;
}

/* add(uint32_t *sum, uint32_t value): each block adds. */
static CUresult add(const struct launch *launch, const struct schedule *schedule)
{
	_Atomic uint32_t *sum = memory_at(argument64(launch, 0), sizeof *sum);

	(void)schedule;
	if (!sum)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	atomic_fetch_add(sum, argument32(launch, 8) * (uint32_t)launch_blocks(launch));
	return CUDA_SUCCESS;
}

static const struct {
	const char *name;
	kernel_model *model;
} models[] = {
	{"where", where},
	{"where_cluster", where_cluster},
	{"add", add},
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
