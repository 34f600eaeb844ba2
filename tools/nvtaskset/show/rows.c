#include "rows.h"

#include "base/extremes.h"
#include "cli/gpus.h"
#include "state/kernels/counts_read.h"

#include <string.h>

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* A process without a segment, or with a library not in force, may have launched any number. */
static void read_kernels(struct row *row)
{
	const struct process *process = row->process;
	struct counts_of_gpu counts = counts_on(&process->counts, row->pci);
	bool is_counted = process->identity.pid != 0 && !process->not_in_force;
	bool knows_ended = is_counted && counts_know_ended(counts.gaps);

	row->gaps = counts.gaps;
	row->numbers[NUMBER_LAUNCHES] = reading_if(is_counted && counts_know_launched(counts.gaps),
	                                           (double)counts.launched);
	row->numbers[NUMBER_ENDED] = reading_if(knows_ended, (double)counts.ended);
	row->numbers[NUMBER_IN_FLIGHT] = reading_if(knows_ended, (double)counts.in_flight);
	row->numbers[NUMBER_UNANNOUNCED] = reading_if(knows_ended, (double)counts.unheard);
}

/* A program not in force may have any amount. */
static void read_memory(struct row *row)
{
	const struct process *process = row->process;
	const struct process_memory *memory =
		pci_address_find(row->pci, process->memory, process->memory_count, sizeof process->memory[0]);
	bool is_known = row->has_gpu && memory && !process->not_in_force;

	row->numbers[NUMBER_MEMORY] = reading_if(is_known, memory ? (double)memory->use.used : 0);
	row->numbers[NUMBER_MEMORY_LIMIT] =
		reading_if(is_known && memory->use.limit > 0, memory ? (double)memory->use.limit : 0);
}

/* How often a launch ran outside the partition, in whole or in part. */
static uint64_t count_outside(const struct segment_counters *counters)
{
	uint64_t total = 0;

	for (int reason = 0; reason < SEGMENT_REASON_COUNT; reason++) {
		if (segment_reason_is_outside((enum segment_reason)reason))
			total = sum_u64(total, counters->reasons[reason]);
	}
	return total;
}

/* An upload is of one launch of a kernel, or of a node of a graph for all launches of the graph. */
static void read_counters(struct row *row)
{
	const struct segment_counters *counters = &row->process->counters;
	bool is_first = row->place == 0;

	row->numbers[NUMBER_UPLOADS] = reading_if(is_first,
	                                          (double)sum_u64(counters->restricted, counters->unrestricted));
	row->numbers[NUMBER_RESTRICTED] = reading_if(is_first, (double)counters->restricted);
	row->numbers[NUMBER_OUTSIDE] = reading_if(is_first, (double)count_outside(counters));
	row->numbers[NUMBER_REFRESHED] = reading_if(is_first, (double)counters->refreshed);
	row->numbers[NUMBER_BORROWED_TIME] = reading_if(is_first, (double)row->process->borrowed.tpc_us);
	row->numbers[NUMBER_OVERRUNS] = reading_if(is_first, (double)row->process->borrowed.overruns);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void find_gpu(struct row *row)
{
	const struct segment_revision *revision = &row->process->revision;
	const struct counts *counts = &row->process->counts;

	if (row->place < revision->count) {
		row->has_gpu = true;
		row->pci = revision->partitions[row->place].pci;
		row->set = &revision->partitions[row->place].set;
	}
	for (unsigned int i = 0, other = revision->count; i < counts->count && !row->has_gpu; i++) {
		if (!revision_find_partition(revision, counts->gpus[i].pci)) {
			row->has_gpu = other++ == row->place;
			row->pci = row->has_gpu ? counts->gpus[i].pci : row->pci;
		}
	}
}

bool row_find(struct row *row, const struct topology_list *gpus)
{
	*row = (struct row){.process = row->process, .place = row->place};
	find_gpu(row);
	if (row->has_gpu) {
		row->topology = topology_find(gpus, row->pci);
		if (pci_address_is_known(row->pci))
			gpus_label(row->pci, gpus, row->gpu);
		else
			strcpy(row->gpu, "?");
	}
	read_kernels(row);
	read_counters(row);
	read_memory(row);
	return row->has_gpu || row->place == 0;
}
