#include "attach.h"

#include "attach/attach.h"
#include "driver.h"
#include "segment.h"
#include "topology/handover.h"

#include <stdio.h>
#include <string.h>

#define LIBRARY "/libnvtaskset-attach.so"

static void tell(pid_t pid, const struct attach_report *report)
{
	if (report->thread)
		fprintf(stderr, "nvtaskset: pid %d: attached: thread %d stood still for %.1f ms; tries: %u\n", (int)pid,
		        (int)report->thread, report->seconds * 1e3, report->tries);
}

/* Where the process has not come to CUDA, the library comes by itself. */
static bool needs_library(pid_t pid)
{
	struct segment segment;
	struct error why;
	enum segment_state state = segment_open(&segment, pid, &why);
	bool needs = state == SEGMENT_NOT_OURS || state == SEGMENT_NOT_IN_FORCE;

	if (state == SEGMENT_FOUND)
		needs = !segment_is_at_work(&segment, pid) && segment_obstacle(&segment, pid);
	segment_close(&segment);
	return needs;
}

static int attach(pid_t pid, const char *library, const char *gpus, bool verbose, struct error *error)
{
	struct attach_report report;
	int result = attach_load(pid, library, gpus, &report, error);

	if (result == 0 && verbose)
		tell(pid, &report);
	return result;
}

int attach_family(const struct pids *family, const struct topology_list *list, bool verbose, struct error *error)
{
	static char gpus[HANDOVER_TEXT];
	char library[PATH_MAX + sizeof LIBRARY];
	int result = driver_own_directory(library, error);

	if (result == 0)
		strcat(library, LIBRARY);
	handover_write("", list, gpus);
	for (size_t i = 0; result == 0 && i < family->count; i++) {
		if (needs_library(family->list[i]))
			result = attach(family->list[i], library, gpus, verbose, error);
	}
	return result;
}
