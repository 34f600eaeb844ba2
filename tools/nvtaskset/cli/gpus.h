/*
 * The GPUs and the SET on a command line.
 *
 * A number is CUDA's number of a GPU in this environment: CUDA_VISIBLE_DEVICES hides GPUs and changes their order. A
 * bus id or a UUID also names a hidden GPU.
 */
#pragma once

#include "base/error.h"
#include "gpu/topology/select_tpcs.h"
#include "gpu/topology/topology.h"

/* The arguments of -G, each a GPU or GPU:SET. */
struct gpus_given {
	unsigned int count; /* 0: the default GPU */
	const char *texts[TOPOLOGY_GPUS_MAX];
};

enum notation {
	NOTATION_MASK,
	NOTATION_TPC_LIST,
	NOTATION_GPC_LIST,
	NOTATION_COUNT /* a number of TPCs: 20, 57% */
};

struct set_given {
	const char *text; /* NULL if every -G has a SET, and with ACTION_SHOW */
	enum notation notation;
	enum strategy strategy; /* for NOTATION_COUNT */
};

/* A GPU, and the text of the SET that the user gave for this GPU alone (NULL: none). */
struct gpu_choice {
	const struct topology *gpu;
	const char *set;
};

struct gpu_choices {
	unsigned int count;
	struct gpu_choice choices[TOPOLOGY_GPUS_MAX];
};

/* The GPUs that a program started here would see, in CUDA's order. -1 with the reason: unknown order, or no visible
 * GPU. */
int gpus_visible(struct gpu_choices *visible, const struct topology_list *list, struct error *error);

/* The SET in an argument of -G, or NULL. */
const char *gpus_set_of(const char *text);

/* Reads the arguments of -G: a number, a bus id, a UUID or "all", each with or without :SET. Without arguments, takes
 * the first visible GPU. Either all GPUs have a SET or none has. -1 with the reason. */
int gpus_choose(struct gpu_choices *chosen, const struct topology_list *list, const struct gpus_given *given,
                struct error *error);

/* CUDA's number of the GPU here; -1 for a hidden GPU, or an unknown number. */
int gpus_number(const struct topology *gpu, const struct topology_list *list);

/* A name that -G understands: the GPU's number, or else the bus id. Returns `text`. */
const char *gpus_label(struct pci_address gpu, const struct topology_list *list, char text[PCI_ADDRESS_TEXT]);
