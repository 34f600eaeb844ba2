#include "cli/actions.h"

#include "attach/attach.h"
#include "attach/entry.h"
#include "gpu/topology/topology.h"
#include "start/driver.h"
#include "state/segment/find.h"
#include "state/segment/segment.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "/" ATTACH_LIBRARY

/* The lack of a process for a partition of its own that is, or will be, in force. */
enum need {
	NEED_NOTHING,
	NEED_SEGMENT, /* shares the parent's, and will load our library with CUDA */
	NEED_LIBRARY
};

static enum need find_need(pid_t pid)
{
	struct segment segment;
	struct error why;
	enum segment_state state = segment_open(&segment, pid, NULL, &why);
	enum need need = NEED_NOTHING;

	bool is_without = state == SEGMENT_FOUND && !segment_is_at_work(&segment, pid) &&
	                  segment_obstacle(&segment, pid);

	if (state == SEGMENT_NOT_OURS || state == SEGMENT_NOT_IN_FORCE || is_without)
		need = NEED_LIBRARY;
	else if (state == SEGMENT_SHARED)
		need = segment_absence(pid, NULL) == SEGMENT_NO_CUDA ? NEED_SEGMENT : NEED_LIBRARY;
	segment_close(&segment);
	return need;
}

static int attach(pid_t pid, const char *library, const char *gpus, bool verbose, struct error *error)
{
	struct attach_report report = {.thread = 0};
	enum need need = find_need(pid);
	int result = 0;

	if (need == NEED_LIBRARY)
		result = attach_load(pid, library, gpus, &report, error);
	else if (need == NEED_SEGMENT)
		result = attach_give_segment(pid, &report, error);
	if (result == 0 && verbose && report.thread)
		fprintf(stderr, "nvtaskset: pid %d: attached: thread %d stood still for %.1f ms; tries: %u\n", (int)pid,
		        (int)report.thread, report.seconds * 1e3, report.tries);
	return result;
}

int attach_processes(const struct pids *pids, const struct topology_list *list, bool verbose, struct error *error)
{
	static char gpus[TOPOLOGY_ENVIRONMENT_MAX];
	char library[PATH_MAX + sizeof LIBRARY];
	int result = start_library_directory(library, error);

	if (result == 0)
		strcat(library, LIBRARY);
	topology_environment_write("", list, gpus);
	for (size_t i = 0; result == 0 && i < pids->count; i++)
		result = attach(pids->list[i], library, gpus, verbose, error);
	return result;
}
