/*
 * Which GPUs a command line names.
 *
 * A number is the one that CUDA gives a GPU in this environment: CUDA_VISIBLE_DEVICES hides GPUs and changes their
 * order. A bus id or a UUID names a GPU whether it is hidden or not.
 */
#ifndef NVTASKSET_CLI_GPUS_H
#define NVTASKSET_CLI_GPUS_H

#include "base/error.h"
#include "gpu/topology/topology.h"

/* One GPU, and the text of the SET that the user gave for it alone (NULL: none). */
struct gpu_choice {
	const struct topology *gpu;
	const char *set;
};

struct gpu_choices {
	unsigned int count;
	struct gpu_choice choices[TOPOLOGY_GPUS_MAX];
};

/* Finds the GPUs that a program started here would see, in CUDA's order. -1 with the reason if their order cannot be
 * known or none is visible. */
int gpus_visible(struct gpu_choices *visible, const struct topology_list *list, struct error *error);

/* The SET in an argument of -G; NULL: it has none. */
const char *gpus_set_of(const char *text);

/* Reads the arguments of -G: a number, a bus id, a UUID or "all", each with or without :SET behind it. Without
 * arguments, it takes the first visible GPU. Either all GPUs have a SET of their own or none has. -1 with the
 * reason. */
int gpus_choose(struct gpu_choices *chosen, const struct topology_list *list, const char *const *texts,
                unsigned int count, struct error *error);

/* Returns the number that CUDA gives the GPU here, or -1 if it is hidden or its number cannot be known. */
int gpus_number(const struct topology *gpu, const struct topology_list *list);

/* Returns a name that -G understands: the GPU's number, or its bus id if it has none here. It is in `text`. */
const char *gpus_label(struct pci_address gpu, const struct topology_list *list, char text[PCI_ADDRESS_TEXT]);

#endif
