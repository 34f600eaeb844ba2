#include "overlap.h"

#include "base/proc.h"
#include "base/purse.h"
#include "cli/gpus.h"
#include "mps/look.h"
#include "state/segment/find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_MOST 1000         /* the latest: the services of a machine start first */
#define ENVIRONMENT_MOST (1U << 20) /* bytes */

struct newcomer {
	const struct segment_revision *revision;
	const struct pids *own;
	struct group_identity group;
	const struct topology_list *list;
};

static bool descends_from(pid_t pid, pid_t ancestor)
{
	for (int generation = 0; generation < PARENT_GENERATIONS && pid > 1 && pid != ancestor; generation++)
		pid = proc_parent(pid);
	return pid == ancestor;
}

static bool is_related(const struct newcomer *newcomer, pid_t pid)
{
	bool is = pids_have(newcomer->own, pid);

	for (size_t i = 0; i < newcomer->own->count && !is; i++)
		is = descends_from(newcomer->own->list[i], pid) || descends_from(pid, newcomer->own->list[i]);
	return is;
}

/* Without MPS. */
static bool takes_turns(pid_t pid, struct purse *purse)
{
	return purse_find(purse, pid, "environ", ENVIRONMENT_MOST, MPS_DIRECTORY_ENVIRONMENT "=/dev/null");
}

/* The TPCs in both partitions; empty if either has the whole GPU. */
static struct tpcset common(const struct segment_partition *partition, const struct segment_revision *other,
                            const struct topology *gpu)
{
	const struct segment_partition *others = revision_find_partition(other, partition->pci);
	const struct tpcset none = {{0}};
	struct tpcset all = gpu ? topology_all(gpu) : partition->set;
	bool is_whole = !others || tpcset_is_subset(&all, &partition->set) || tpcset_is_subset(&all, &others->set);

	return is_whole ? none : tpcset_and(&partition->set, &others->set);
}

static bool report(const struct newcomer *newcomer, const struct segment_partition *partition,
                   const struct tpcset *shared, pid_t pid, struct purse *purse)
{
	char tpcs[TPCSET_TEXT], label[PCI_ADDRESS_TEXT], name[32];
	struct error line;

	if (tpcset_is_empty(shared) || is_related(newcomer, pid) || takes_turns(pid, purse))
		return false;
	proc_read_text(name, sizeof name, "/proc/%d/comm", (int)pid);
	name[strcspn(name, "\n")] = '\0';
	error_set(&line, "TPCs %.80s of GPU %s are also in the partition of pid %d (%s); -n chooses free ones",
	          tpcset_format_list(shared, tpcs), gpus_label(partition->pci, newcomer->list, label), (int)pid, name);
	fprintf(stderr, "nvtaskset: %s\n", line.reason);
	return true;
}

static bool look_at(const struct newcomer *newcomer, pid_t pid, struct purse *purse)
{
	struct segment segment;
	struct segment_revision other;
	uint64_t number;
	bool is_reported = false;

	if (segment_open(&segment, pid, purse, NULL) != SEGMENT_FOUND)
		return false;
	bool counts = !group_is_same(segment.group.identity, newcomer->group) &&
	              segment_read(&segment, &other, &number) && !segment_time_limits(&other);

	for (uint32_t i = 0; counts && i < newcomer->revision->count && !is_reported; i++) {
		const struct segment_partition *partition = &newcomer->revision->partitions[i];
		struct tpcset shared = common(partition, &other, topology_find(newcomer->list, partition->pci));

		is_reported = report(newcomer, partition, &shared, pid, purse);
	}
	segment_close(&segment);
	return is_reported;
}

/* Most processes of a quiet machine are the kernel's threads. A process whose first thread has ended is left out, too:
 * the line is a hint. */
void overlap_report(const struct segment_revision *revision, const struct pids *own, struct group_identity group,
                    const struct topology_list *list)
{
	const struct newcomer newcomer = {revision, own, group, list};
	struct purse purse = {.wait_ms = 0};
	struct pids all = {.count = 0};
	bool is_meant = segment_time_limits(revision) || (own->count > 0 && takes_turns(own->list[0], NULL));
	bool is_reported = is_meant || pids_all(&all, NULL) < 0;

	for (size_t i = 0; i < PROCESSES_MOST && i < all.count && !is_reported; i++) {
		pid_t pid = all.list[all.count - 1 - i];

		is_reported = proc_has_program(pid) && purse_begin(&purse, pid) && look_at(&newcomer, pid, &purse);
	}
	free(all.list);
}
