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

/* What a slot of a descriptor makes the hardware write when the kernel has ended (facts.md, "Releases"). */
struct release {
	unsigned int words; /* 1, 2 or 4, of 32 bits */
	bool reduces;
	unsigned int operation; /* of the reduction */
	bool is_64_bit;         /* the payload */
	uint64_t address;
	uint64_t payload;
};

#define DESCRIPTOR_SLOTS 3

/* Aligned to 4 bytes only, like the driver's in graphs (facts.md, "Callbacks"). */
struct descriptor {
	uint32_t odd; /* keeps `words` from being 8-byte aligned by accident */
	uint32_t words[DESCRIPTOR_WORDS];
} __attribute__((aligned(8)));

/* Writes what the driver writes before the callback, including its own mask (facts.md, "Launch descriptors"). */
void descriptor_write(struct descriptor *descriptor, const struct launch *launch);

/* The same for one that was written before, or is all 0: the releases in it stay, as on an H100 when an instance is updated. */
void descriptor_rewrite(struct descriptor *descriptor, const struct launch *launch);

/* Whether a node of a graph fetches the parameters of the next one ahead (facts.md, "CUDA graphs"); it does, or does no longer. */
bool descriptor_has_next(const struct topology *gpu);
void descriptor_set_next(struct descriptor *descriptor, const struct topology *gpu, bool fetches_ahead);

/* Ends the test if a callback changed anything but the mask, the releases and what is fetched ahead. */
void descriptor_check_change(const struct descriptor *before, const struct descriptor *after, const struct topology *gpu);

/* The TPCs that the descriptor enables. */
struct tpcset descriptor_enabled(const struct descriptor *descriptor, const struct topology *gpu);

/* Fills the slot. False if this GPU's descriptors have no slots. */
bool descriptor_set_release(struct descriptor *descriptor, const struct topology *gpu, unsigned int slot,
                            const struct release *release);

bool descriptor_fetches_ahead(const struct descriptor *descriptor, const struct topology *gpu);

/* Whether the slot is used, and for what. */
bool descriptor_release(const struct descriptor *descriptor, const struct topology *gpu, unsigned int slot,
                        struct release *release);

#endif
