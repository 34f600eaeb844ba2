/*
 * Usage: predict PID FUNCTION
 *
 * Says in the segment of process PID, in place of its library, what was predicted of FUNCTION, whose kernels somebody has
 * looked at, and of a graph.
 */
#include "state/area.h"
#include "state/layout.h"
#include "state/stamps_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct stamps_memory *map_times(const struct segment *segment, const char *pid)
{
	const struct segment_area *area = &segment->memory->stamps[0];
	char path[64];

	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	return area_map(open(path, O_RDONLY | O_DIRECTORY), area->file, area->inode, sizeof(struct stamps_memory));
}

static uint64_t find(const struct stamps_memory *memory, const char *wanted)
{
	uint64_t function = 0, found = 0;
	char name[STAMPS_NAME_MAX + 1];

	for (unsigned int i = 0; i < stamps_names_count(&memory->rings[0]); i++) {
		if (stamps_read_name(&memory->rings[0], i, &function, name) && strcmp(name, wanted) == 0)
			found = function;
	}
	return found;
}

int main(int count, char **arguments)
{
	struct segment segment;
	struct predictions predictions = {
		.all = {.known = 50, .unknown = 3, .predicted_ns = 6000, .came_ns = 8000, .error_ns = 2000},
		.count = 2,
		.list = {{.quality = {.known = 10, .unknown = 1, .predicted_ns = 20000, .came_ns = 16000, .error_ns = 4000}},
		         {.what = 0x55d0, .is_graph = true, .quality = {.unknown = 2}}},
	};

	if (count < 3 || segment_open(&segment, atoi(arguments[1]), NULL) != SEGMENT_FOUND)
		return EXIT_FAILURE;
	const struct stamps_memory *times = map_times(&segment, arguments[1]);

	if (!times)
		return EXIT_FAILURE;
	predictions.list[0].what = find(times, arguments[2]);
	predictions_publish(&segment, &predictions);
	return EXIT_SUCCESS;
}
