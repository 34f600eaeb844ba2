/* Why a process has no segment, or does not obey its segment. */
#include "execution.h"
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Whether one of the pieces of /proc/PID/`name` contains the text. Each piece ends with `end`. */
static bool file_contains(pid_t pid, const char *name, int end, const char *text)
{
	char path[64], *piece = NULL;
	size_t size = 0;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	FILE *file = fopen(path, "re");

	while (file && !found && getdelim(&piece, &size, end, file) > 0)
		found = strstr(piece, text) != NULL;
	free(piece);
	if (file)
		fclose(file);
	return found;
}

static bool uses_cuda(pid_t pid)
{
	return file_contains(pid, "maps", '\n', "/libcuda.so.");
}

bool segment_is_expected(pid_t pid)
{
	return file_contains(pid, "environ", '\0', SEGMENT_ENVIRONMENT "=");
}

enum segment_state segment_absence(pid_t pid)
{
	enum segment_state state = SEGMENT_NOT_OURS;

	/* A process without CUDA may have mapped the segments of others, which it edits: so CUDA is checked first. */
	if (!uses_cuda(pid))
		state = SEGMENT_NO_CUDA;
	else if (file_contains(pid, "maps", '\n', SEGMENT_LINK))
		state = SEGMENT_CLOSED;
	else if (segment_is_expected(pid))
		state = SEGMENT_NOT_IN_FORCE;
	return state;
}

const char *segment_absence_text(enum segment_state state)
{
	const char *text = "was started without nvtaskset: --attach gives it a partition all the same";

	if (state == SEGMENT_CLOSED)
		text = "has closed the file of its partition, which is out of reach until the program makes its next CUDA context";
	else if (state == SEGMENT_NO_CUDA)
		text = "has not loaded CUDA";
	else if (state == SEGMENT_NOT_IN_FORCE)
		text = "its partition is not in force: the driver was loaded without our library, is being loaded just now, or "
		       "our library said on standard error why not";
	return text;
}

bool segment_is_at_work(const struct segment *segment, pid_t pid)
{
	uint64_t execution = atomic_load(&segment->memory->execution);

	return execution != 0 && execution == execution_of(pid);
}

const char *segment_obstacle(const struct segment *segment, pid_t pid)
{
	const char *obstacle = NULL;

	if (atomic_load_explicit(&segment->memory->out_of_force, memory_order_relaxed))
		obstacle = "its partition is not in force until another tool (a profiler or debugger) gives up the driver's "
		           "callback slot";
	else if (!segment_is_at_work(segment, pid) && uses_cuda(pid))
		obstacle = segment_absence_text(SEGMENT_NOT_IN_FORCE);
	return obstacle;
}
