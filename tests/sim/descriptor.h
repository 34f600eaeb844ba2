/*
 * The launch descriptor (QMD) that the simulated driver writes and the simulated hardware reads.
 *
 * The .c has its own positions of fields, from NVIDIA's published headers and not from src/gpu/qmd.c, so that each
 * checks the other.
 */
#ifndef SIM_DESCRIPTOR_H
#define SIM_DESCRIPTOR_H

#include "gpu/topology/topology.h"

#define DESCRIPTOR_WORDS 96

struct launch;

/* Aligned to 4 bytes only, like the driver's in graphs (docs/facts.md, "Callbacks"). */
struct descriptor {
	uint32_t odd; /* keeps `words` from being 8-byte aligned by accident */
	uint32_t words[DESCRIPTOR_WORDS];
} __attribute__((aligned(8)));

/* Writes what the driver writes before the callback, including its own mask (docs/facts.md, "Launch descriptors"). */
void descriptor_write(struct descriptor *descriptor, const struct launch *launch);

/* Ends the test if a callback changed anything but the mask. */
void descriptor_check_change(const struct descriptor *before, const struct descriptor *after,
                             const struct topology *gpu);

/* The TPCs that the descriptor enables. */
struct tpcset descriptor_enabled(const struct descriptor *descriptor, const struct topology *gpu);

#endif
