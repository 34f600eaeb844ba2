/*
 * The rows of a process in a list: one for each of its GPUs.
 */
#ifndef NVTASKSET_ROWS_H
#define NVTASKSET_ROWS_H

#include "processes.h"

/* A process on one GPU: first those of its partition, then others on which it has launched. A process without any has one
 * row. */
struct row {
	const struct process *process;
	uint32_t place; /* among the rows of the process, from 0 on */
	bool has_gpu;
	struct pci_address pci;
	const struct tpcset *set; /* NULL: the GPU is not restricted */
};

/* Fills in the row at the place of this process that `row` names; false if there is none. */
bool row_find(struct row *row);

#endif
