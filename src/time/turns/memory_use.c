#include "memory_use.h"

#include "base/proc.h"
#include "driver/functions.h"
#include "gpu/cubin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A driver that does not know the attribute grants no access to pageable memory. */
static bool uses_any_memory(int number)
{
	CUdevice device;
	int value = 0;

	return driver.device_get_attribute && driver.device_get(&device, number) == CUDA_SUCCESS &&
	       driver.device_get_attribute(&value, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, device) ==
	               CUDA_SUCCESS && value;
}

enum segment_time_state memory_use_of_gpus(void)
{
	bool is_found = false;
	int count = 0;

	if (driver.device_get_count(&count) != CUDA_SUCCESS)
		count = 0;
	for (int number = 0; number < count && !is_found; number++)
		is_found = uses_any_memory(number);
	return is_found ? SEGMENT_TIME_PAGEABLE : SEGMENT_TIME_NONE;
}

bool memory_use_wants_call(int id)
{
	return calls_may_use_managed_memory(id) || calls_share_memory(id);
}

enum segment_time_state memory_use_of_call(const struct call *call)
{
	enum segment_time_state found = SEGMENT_TIME_NONE;

	if (calls_use_managed_memory(call))
		found = SEGMENT_TIME_MANAGED;
	else if (calls_share_memory(call->id))
		found = SEGMENT_TIME_SHARED;
	return found;
}

enum segment_time_state memory_use_of_module(const void *cubin, size_t size)
{
	return cubin_has_managed_variables(cubin, size) ? SEGMENT_TIME_MANAGED : SEGMENT_TIME_NONE;
}

#define MANAGED_DEVICE "/dev/nvidia-uvm"

/* The device maps managed memory, and some buffers of the driver. */
static enum segment_time_state of_mapping(const char *line)
{
	enum segment_time_state found = SEGMENT_TIME_NONE;
	struct mapping mapping;
	unsigned int is_managed = 0;

	if (!proc_mapping_parse(&mapping, line) || strncmp(mapping.path, MANAGED_DEVICE, strlen(MANAGED_DEVICE)) != 0)
		return found;
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;

	if (driver.pointer_get_attribute)
		result = driver.pointer_get_attribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, mapping.start);
	if (result == CUDA_SUCCESS && is_managed)
		found = SEGMENT_TIME_MANAGED;
	else if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_VALUE)
		found = SEGMENT_TIME_OLDER;
	return found;
}

enum segment_time_state memory_use_of_past(void)
{
	FILE *maps = proc_stream(0, "maps");
	enum segment_time_state found = maps ? SEGMENT_TIME_NONE : SEGMENT_TIME_OLDER;
	char *line = NULL;
	size_t size = 0;

	while (found == SEGMENT_TIME_NONE && getline(&line, &size, maps) > 0)
		found = of_mapping(line);
	free(line);
	if (maps)
		fclose(maps);
	return found;
}
