#include "api/internal.h"

#include "pids.h"
#include "segment.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

_Static_assert(SEGMENT_REASON_COUNT <= NVTASKSET_REASONS_MAX, "room for all reasons");

struct nvtaskset_partition {
	const struct nvtaskset_topology *topology;
	pid_t pid;
	int process; /* a descriptor that stands for it; -1 where the kernel has none */
	struct segment segment;
};

/* --- handles --------------------------------------------------------------------------------------------------------- */

static bool has_ended(const struct nvtaskset_partition *partition)
{
	struct pollfd process = {.fd = partition->process, .events = POLLIN};

	return poll(&process, 1, 0) > 0;
}

/* Finds the segment of the process that the handle is for, and of no other that has got its pid meanwhile. */
static int find_segment(const struct nvtaskset_partition *partition, struct segment *segment, struct error *error)
{
	if (segment_open(segment, partition->pid, error) != SEGMENT_FOUND)
		return -1;
	if (has_ended(partition)) {
		segment_close(segment);
		return error_set(error, "pid %d: has ended", (int)partition->pid);
	}
	return 0;
}

int nvtaskset_partition_open(struct nvtaskset_partition **partition, const struct nvtaskset_topology *topology,
                             pid_t pid, struct nvtaskset_error *error)
{
	struct nvtaskset_partition *opened;

	if (pid < 1)
		return error_set(inside_error(error), "pid %d: not a process id", (int)pid);
	opened = malloc(sizeof *opened);
	if (!opened)
		return error_set(inside_error(error), "no memory");
	*opened = (struct nvtaskset_partition){.topology = topology, .pid = pid};
	opened->process = (int)syscall(SYS_pidfd_open, pid, 0);

	struct error why; /* without one, it is not looked for everywhere */

	if (find_segment(opened, &opened->segment, &why) < 0) {
		nvtaskset_partition_close(opened);
		return error_set(inside_error(error), "%s", why.reason);
	}
	*partition = opened;
	return 0;
}

void nvtaskset_partition_close(struct nvtaskset_partition *partition)
{
	if (!partition)
		return;
	segment_close(&partition->segment);
	if (partition->process >= 0)
		close(partition->process);
	free(partition);
}

int nvtaskset_partition_descriptor(const struct nvtaskset_partition *partition)
{
	return partition->process;
}

/* Follows the process where it has moved its partition to a new file. */
static int follow(struct nvtaskset_partition *partition, struct error *error)
{
	struct segment moved;

	if (!segment_has_moved(&partition->segment))
		return 0;
	if (partition->process < 0)
		return error_set(error, "pid %d: its partition has moved: open it again", (int)partition->pid);
	if (find_segment(partition, &moved, error) < 0)
		return -1;
	segment_close(&partition->segment);
	partition->segment = moved;
	return 0;
}

static bool is_same_file(int a, int b)
{
	struct stat status_a, status_b;

	return fstat(a, &status_a) == 0 && fstat(b, &status_b) == 0 && status_a.st_dev == status_b.st_dev &&
	       status_a.st_ino == status_b.st_ino;
}

int nvtaskset_partition_check(struct nvtaskset_partition *partition, struct nvtaskset_error *error)
{
	struct error why;
	struct segment found;
	bool same;

	if (has_ended(partition))
		return error_set(inside_error(error), "pid %d: has ended", (int)partition->pid);
	if (follow(partition, inside_error(error)) < 0)
		return -1;
	const char *obstacle = segment_obstacle(&partition->segment);

	if (obstacle)
		return error_set(inside_error(error), "pid %d: %s", (int)partition->pid, obstacle);
	enum segment_state state = segment_open(&found, partition->pid, &why);

	/* It has closed the file, and has it mapped still. */
	if (state == SEGMENT_CLOSED)
		return 0;
	if (state != SEGMENT_FOUND)
		return error_set(inside_error(error), "%s", why.reason);
	same = is_same_file(found.file, partition->segment.file);
	segment_close(&found);
	return same ? 0 : error_set(inside_error(error), "pid %d: runs another program now: open it again",
	                            (int)partition->pid);
}

/* --- sets --------------------------------------------------------------------------------------------------------------- */

int nvtaskset_partition_get(struct nvtaskset_partition *partition, unsigned int gpu, struct nvtaskset_set *set,
                            struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(partition->topology, gpu, inside_error(error));
	struct segment_revision revision;
	uint64_t number;

	if (!model || follow(partition, inside_error(error)) < 0)
		return -1;
	if (!segment_read(&partition->segment, &revision, &number))
		return error_set(inside_error(error), "pid %d: its segment is damaged", (int)partition->pid);
	const struct tpcset *all = &partition->topology->all[gpu];
	const struct segment_partition *found = segment_find(&revision, model->pci);
	struct tpcset present = tpcset_and(all, found ? &found->set : all);

	*set = outside(&present);
	return 0;
}

static int check_set(const struct tpcset *set, const struct tpcset *all, const struct topology *gpu, struct error *error)
{
	struct tpcset absent = tpcset_without(set, all);

	if (!tpcset_is_empty(&absent))
		return error_set(error, "TPC %u: this GPU has TPCs 0-%u", tpcset_next(&absent, 0), gpu->tpc_count - 1u);
	if (tpcset_is_empty(set))
		return error_set(error, "an empty set: a program without TPCs would never run");
	return 0;
}

int nvtaskset_partition_set(struct nvtaskset_partition *partition, unsigned int gpu, const struct nvtaskset_set *set,
                            struct nvtaskset_error *error)
{
	const struct topology *model = api_gpu(partition->topology, gpu, inside_error(error));
	struct segment_partition wanted = {.set = inside(set)};
	int result;

	if (!model || check_set(&wanted.set, &partition->topology->all[gpu], model, inside_error(error)) < 0 ||
	    follow(partition, inside_error(error)) < 0)
		return -1;
	wanted.pci = model->pci;
	result = segment_edit(&partition->segment, &wanted, inside_error(error));
	/* It can move in the middle; that is once in the life of most programs which do. */
	if (result < 0 && segment_has_moved(&partition->segment) && follow(partition, inside_error(error)) == 0)
		result = segment_edit(&partition->segment, &wanted, inside_error(error));
	return result;
}

/* --- counters ----------------------------------------------------------------------------------------------------------- */

const char *nvtaskset_reason_text(unsigned int reason)
{
	return reason < SEGMENT_REASON_COUNT ? segment_reason_text((enum segment_reason)reason) : NULL;
}

int nvtaskset_partition_counters(struct nvtaskset_partition *partition, struct nvtaskset_counters *counters,
                                 struct nvtaskset_error *error)
{
	struct segment_counters counted;
	struct nvtaskset_counters filled;

	if (follow(partition, inside_error(error)) < 0)
		return -1;
	segment_read_counters(&partition->segment, &counted);
	filled = (struct nvtaskset_counters){.restricted = counted.restricted,
	                                     .unrestricted = counted.unrestricted,
	                                     .refreshed = counted.refreshed};
	memcpy(filled.reasons, counted.reasons, sizeof counted.reasons);
	return api_fill(counters, &filled, sizeof filled, inside_error(error));
}

/* --- who has one -------------------------------------------------------------------------------------------------------- */

static bool has_partition(pid_t pid)
{
	struct segment segment;
	bool found = segment_open(&segment, pid, NULL) == SEGMENT_FOUND;

	segment_close(&segment);
	return found;
}

int nvtaskset_processes(pid_t *pids, size_t room, size_t *count, struct nvtaskset_error *error)
{
	struct pids all;
	size_t found = 0;

	if (pids_all(&all, inside_error(error)) < 0)
		return -1;
	for (size_t i = 0; i < all.count; i++) {
		if (has_partition(all.list[i])) {
			if (found < room)
				pids[found] = all.list[i];
			found++;
		}
	}
	free(all.list);
	*count = found;
	return 0;
}
