/*
 * Which GPUs a command line means.
 *
 * Numbers are CUDA's in this environment: CUDA_VISIBLE_DEVICES hides and reorders. Bus ids and UUIDs mean the
 * GPU itself, hidden or not.
 */
#ifndef NVTASKSET_GPUS_H
#define NVTASKSET_GPUS_H

#include "base/error.h"
#include "gpu/topology/topology.h"

/* One GPU, and the text of the SET that the user gave for it alone (NULL where there is none). */
struct gpu_choice {
	const struct topology *gpu;
	const char *set;
};

struct gpu_choices {
	unsigned int count;
	struct gpu_choice choices[TOPOLOGY_GPUS_MAX];
};

/* The GPUs that CUDA would show a program started here, in CUDA's order. -1 with the reason where that
 * cannot be known, or none is visible. */
int gpus_visible(struct gpu_choices *visible, const struct topology_list *list, struct error *error);

/* Reads the arguments of -G: N, a bus id, a UUID, "all", each with :SET behind it where wanted. None at all
 * means the first visible GPU. Whether a GPU has a SET of its own must be the same for all. */
int gpus_choose(struct gpu_choices *chosen, const struct topology_list *list, const char *const *texts,
                unsigned int count, struct error *error);

/* The number that CUDA gives the GPU here, or -1 where it is hidden. */
int gpus_number(const struct topology *gpu, const struct topology_list *list);

/* What to call a GPU, so that -G understands it: the number that CUDA gives it here, or its bus id. */
const char *gpus_label(struct pci_address gpu, const struct topology_list *list, char text[PCI_ADDRESS_TEXT]);

#endif
