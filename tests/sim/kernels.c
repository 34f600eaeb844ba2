#include "kernels.h"

#include "faults.h"
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

static uint32_t sm_as_told(uint32_t sm)
{
	if (fault(FAULT_IDLE_SM) && sm == 7)
		sm = 0;
	return fault(FAULT_RENUMBERED) ? sm + 1 : sm;
}

/* where(uint32_t *sms, uint64_t cycles): each block writes the SM that it ran on. */
static CUresult where(const struct launch *launch, const struct schedule *schedule)
{
	size_t blocks = launch_blocks(launch);
	uint32_t *sms = memory_at(argument64(launch, 0), blocks * sizeof *sms);

	if (!sms)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	for (size_t block = 0; block < blocks; block++)
		sms[block] = sm_as_told(schedule_sm(schedule, block));
	return CUDA_SUCCESS;
}

static const struct {
	const char *name;
	kernel_model *model;
} models[] = {
	{"where", where},
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
