#include "rows.h"

bool row_find(struct row *row)
{
	const struct process *process = row->process;
	uint32_t place = row->place, restricted = process->revision.count;

	row->has_gpu = false;
	row->set = NULL;
	if (place < restricted) {
		row->pci = process->revision.partitions[place].pci;
		row->set = &process->revision.partitions[place].set;
		row->has_gpu = true;
		return true;
	}
	for (unsigned int i = 0, other = restricted; i < process->counts.count && !row->has_gpu; i++) {
		if (!segment_find(&process->revision, process->counts.gpus[i].pci)) {
			row->pci = process->counts.gpus[i].pci;
			row->has_gpu = other++ == place;
		}
	}
	return row->has_gpu || place == 0;
}
