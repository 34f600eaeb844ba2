/* Why a process has no segment, or does not obey its segment. */
#include "base/identity.h"
#include "base/purse.h"
#include "layout.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A process has any number of mappings, and says of itself where its environment lies: that may be all of its memory. More
 * than this is not read: the kernel lets nobody begin with more environment, and 40 000 mappings are not those of a program. */
#define ENVIRONMENT_MOST (6U << 20)
#define MAPS_MOST (4U << 20)

/* Whether /proc/PID/`name` contains the text, in its first bytes. */
static bool file_contains(pid_t pid, const char *name, size_t most, const char *text)
{
	char path[64], part[4096];
	size_t length = strlen(text), kept = 0, total = 0;
	ssize_t came = 1;
	bool found = false;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	int file = open(path, O_RDONLY | O_CLOEXEC);

	while (file >= 0 && !found && came > 0 && total < most) {
		came = read(file, part + kept, sizeof part - kept);
		if (came > 0 && !purse_pay_bytes((size_t)came))
			came = -1;
		if (came > 0) {
			size_t here = kept + (size_t)came;

			found = memmem(part, here, text, length) != NULL;
			/* The text may lie across two parts. */
			kept = here < length ? here : length - 1;
			memmove(part, part + here - kept, kept);
			total += (size_t)came;
		}
	}
	if (file >= 0)
		close(file);
	return found;
}

static bool uses_cuda(pid_t pid)
{
	return file_contains(pid, "maps", MAPS_MOST, "/libcuda.so.");
}

bool segment_is_expected(pid_t pid)
{
	return file_contains(pid, "environ", ENVIRONMENT_MOST, SEGMENT_ENVIRONMENT "=");
}

enum segment_state segment_absence(pid_t pid)
{
	enum segment_state state = SEGMENT_NOT_OURS;

	/* A process without CUDA may have mapped the segments of others, which it edits: so CUDA is checked first. */
	if (!uses_cuda(pid))
		state = SEGMENT_NO_CUDA;
	else if (file_contains(pid, "maps", MAPS_MOST, SEGMENT_LINK))
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
