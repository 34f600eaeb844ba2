#include "api/time_given.h"
#include "state/kernels/counts_read.h"
#include "state/segment/find.h"

#include "base/pids.h"
#include "state/segment/edit.h"

#include <stdlib.h>
#include <sys/stat.h>

_Static_assert(SEGMENT_REASON_COUNT <= NVTASKSET_REASONS_MAX, "room for all reasons");

struct nvtaskset_partition {
	const struct nvtaskset_topology *topology;
	struct editor editor;
};

/* --- handles ------------------------------------------------------------------------------------------------------ */

int nvtaskset_partition_open(struct nvtaskset_partition **partition, const struct nvtaskset_topology *topology,
                             pid_t pid, struct nvtaskset_error *error)
{
	struct nvtaskset_partition *opened;

	if (pid < 1)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_INVALID, "pid %d: not a process id",
		                      (int)pid);
	opened = malloc(sizeof *opened);
	if (!opened)
		return error_set_code(inside_error(error), NVTASKSET_ERROR_NO_MEMORY, "no memory");
	opened->topology = topology;
	if (editor_open(&opened->editor, pid, NULL, inside_error(error)) != SEGMENT_FOUND) {
		free(opened);
		return -1;
	}
	*partition = opened;
	return 0;
}

void nvtaskset_partition_close(struct nvtaskset_partition *partition)
{
	if (partition)
		editor_close(&partition->editor);
	free(partition);
}

int nvtaskset_partition_descriptor(const struct nvtaskset_partition *partition)
{
	return partition->editor.process;
}

static bool is_same_file(int a, int b)
{
	struct stat status_a, status_b;

	return fstat(a, &status_a) == 0 && fstat(b, &status_b) == 0 && status_a.st_dev == status_b.st_dev &&
	       status_a.st_ino == status_b.st_ino;
}

/* 0 if the process still has the segment, perhaps with the file closed. Otherwise -1 with the reason. */
static int check_found(const struct editor *editor, struct error *error)
{
	struct editor found;
	enum segment_state state = editor_open(&found, editor->pid, NULL, error);
	bool is_same = state == SEGMENT_CLOSED;

	if (state == SEGMENT_FOUND) {
		is_same = is_same_file(found.segment.file, editor->segment.file);
		editor_close(&found);
		if (!is_same)
			error_set_code(error, NVTASKSET_ERROR_STALE, "pid %d: has a new partition: open it again",
			               (int)editor->pid);
	}
	return is_same ? 0 : -1;
}

int nvtaskset_partition_check(struct nvtaskset_partition *partition, struct nvtaskset_error *error)
{
	struct editor *editor = &partition->editor;

	if (editor_has_ended(editor))
		return error_set_code(inside_error(error), NVTASKSET_ERROR_ENDED, "pid %d: has ended",
		                      (int)editor->pid);
	if (editor_follow(editor, inside_error(error)) < 0)
		return -1;
	const char *obstacle = segment_obstacle(&editor->segment, editor->pid);

	return obstacle ? error_set_code(inside_error(error), NVTASKSET_ERROR_NOT_IN_FORCE, "pid %d: %s",
	                                 (int)editor->pid, obstacle)
	                : check_found(editor, inside_error(error));
}

/* --- sets --------------------------------------------------------------------------------------------------------- */

int nvtaskset_partition_get(struct nvtaskset_partition *partition, unsigned int gpu, struct nvtaskset_set *set,
                            struct nvtaskset_error *error)
{
	struct segment_revision revision;

	if (!api_gpu(partition->topology, gpu, inside_error(error)) ||
	    editor_read(&partition->editor, &revision, inside_error(error)) < 0)
		return -1;
	*set = api_set_on(partition->topology, gpu, &revision);
	return 0;
}

int nvtaskset_partition_set(struct nvtaskset_partition *partition, unsigned int gpu, const struct nvtaskset_set *set,
                            struct nvtaskset_error *error)
{
	struct segment_revision wanted;

	return api_want_set(&wanted, partition->topology, gpu, set, inside_error(error)) < 0
	               ? -1
	               : editor_change(&partition->editor, 1, &wanted, inside_error(error));
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

const char *nvtaskset_reason_text(unsigned int reason)
{
	return reason < SEGMENT_REASON_COUNT ? segment_reason_text((enum segment_reason)reason) : NULL;
}

int nvtaskset_partition_counters(struct nvtaskset_partition *partition, struct nvtaskset_counters *counters,
                                 struct nvtaskset_error *error)
{
	struct segment_counters counted;
	struct nvtaskset_counters filled;

	if (editor_follow(&partition->editor, inside_error(error)) < 0)
		return -1;
	segment_read_counters(&partition->editor.segment, &counted);
	filled = (struct nvtaskset_counters){.restricted = counted.restricted,
	                                     .unrestricted = counted.unrestricted,
	                                     .refreshed = counted.refreshed};
	memcpy(filled.reasons, counted.reasons, sizeof counted.reasons);
	return api_fill(counters, &filled, sizeof filled, inside_error(error));
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

const char *nvtaskset_gap_text(unsigned int gap)
{
	return gap < COUNTS_GAP_COUNT ? counts_gap_text((enum counts_gap)gap) : NULL;
}

/* Another process may have the pid by now: the end of the process is asked about after the counts were read. A library
 * out of force hears of no launch. */
int nvtaskset_partition_kernels(struct nvtaskset_partition *partition, unsigned int gpu,
                                struct nvtaskset_kernels *kernels, struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(partition->topology, gpu, inside_error(error));
	struct editor *editor = &partition->editor;
	struct counts counts;

	if (!model || editor_follow(editor, inside_error(error)) < 0 ||
	    counts_read(&editor->segment, editor->pid, &counts, inside_error(error)) < 0)
		return -1;
	bool is_in_force = !segment_obstacle(&editor->segment, editor->pid);

	if (editor_has_ended(editor))
		return error_set_code(inside_error(error), NVTASKSET_ERROR_ENDED, "pid %d: has ended",
		                      (int)editor->pid);
	struct counts_of_gpu counted = counts_on(&counts, model->pci);
	struct nvtaskset_kernels filled = {.launched = counted.launched,
	                                   .ended = counted.ended,
	                                   .in_flight = counted.in_flight,
	                                   .unannounced = counted.unheard,
	                                   .gaps = counted.gaps,
	                                   .launched_is_known = is_in_force && counts_know_launched(counted.gaps),
	                                   .ended_is_known = is_in_force && counts_know_ended(counted.gaps)};

	return api_fill(kernels, &filled, sizeof filled, inside_error(error));
}

/* --- the time ----------------------------------------------------------------------------------------------------- */

const char *nvtaskset_quota_text(uint32_t state)
{
	return state < SEGMENT_TIME_STATE_COUNT ? segment_time_text((enum segment_time_state)state) : NULL;
}

static int read_given(struct nvtaskset_partition *partition, struct api_given *given, struct error *error)
{
	if (editor_read(&partition->editor, &given->revision, error) < 0)
		return -1;
	segment_read_time(&partition->editor.segment, &given->time);
	given->borrowed = segment_read_borrowed(&partition->editor.segment);
	return 0;
}

#define READER(name)                                                                                            \
	int nvtaskset_partition_##name(struct nvtaskset_partition *partition, struct nvtaskset_##name *name,    \
	                               struct nvtaskset_error *error)                                           \
	{                                                                                                       \
		struct api_given given;                                                                         \
                                                                                                                \
		return read_given(partition, &given, inside_error(error)) < 0                                   \
		               ? -1                                                                             \
		               : api_fill_##name(name, &given, inside_error(error));                            \
	}
API_READERS(READER)

static int change_partition(struct nvtaskset_partition *partition, const struct segment_revision *wanted,
                            struct error *error)
{
	return editor_follow(&partition->editor, error) < 0 ||
	               api_check_time(partition->editor.pid, wanted, error) < 0
	           ? -1
	           : editor_change(&partition->editor, 1, wanted, error);
}

#define SETTER(name, setting, text, ...)                                                        \
	int nvtaskset_partition_set_##name(struct nvtaskset_partition *partition, __VA_ARGS__,  \
	                                   struct nvtaskset_error *error)                       \
	{                                                                                       \
		struct segment_revision wanted;                                                 \
                                                                                                \
		return api_want(&wanted, setting, inside_error(error), API_TEXT text) < 0       \
		               ? -1                                                             \
		               : change_partition(partition, &wanted, inside_error(error));               \
	}
API_SETTERS(SETTER)

/* --- memory ------------------------------------------------------------------------------------------------------- */

int nvtaskset_partition_memory(struct nvtaskset_partition *partition, unsigned int gpu, struct nvtaskset_memory *memory,
                               struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(partition->topology, gpu, inside_error(error));

	if (!model || editor_follow(&partition->editor, inside_error(error)) < 0)
		return -1;
	const struct editor *editor = &partition->editor;
	struct segment_memory_use use = segment_read_memory_use(&editor->segment, model->pci);

	segment_ask_memory_use(model->pci, &(struct segment_memory_user){editor->pid, &use}, 1);
	return api_fill_memory(memory, &use, inside_error(error));
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

int nvtaskset_processes(pid_t *pids, size_t room, size_t *count, struct nvtaskset_error *error)
{
	struct pids all;
	size_t found = 0;

	if (pids_all(&all, inside_error(error)) < 0)
		return api_failed(error, NVTASKSET_ERROR_NO_MEMORY);
	for (size_t i = 0; i < all.count; i++) {
		if (segment_exists(all.list[i])) {
			if (found < room)
				pids[found] = all.list[i];
			found++;
		}
	}
	free(all.list);
	*count = found;
	return 0;
}
