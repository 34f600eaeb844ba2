/*
 * The launch descriptor of a kernel (QMD, also TMD): where each version keeps what we need.
 *
 * This file's .c alone knows bit positions. They are published in NVIDIA's open-gpu-doc, in
 * classes/compute/cl*qmd.h; FACTS 3 says what was measured. A set mask bit disables the TPC.
 */
#ifndef NVTASKSET_QMD_H
#define NVTASKSET_QMD_H

#include <stdint.h>

/* No version that we know has a wider mask. */
#define QMD_MASK_BITS 128

/* A disable mask: TPC bit n is bit n % 64 of words[n / 64]. */
struct qmd_mask {
	uint64_t words[QMD_MASK_BITS / 64];
};

/* The descriptor versions of one generation of GPUs. */
struct qmd_family;

enum qmd_outcome {
	QMD_NARROWED,        /* just what both the driver and we leave enabled is enabled now */
	QMD_OVERRULED,       /* the driver's own mask and ours leave nothing together: ours alone is in force */
	QMD_UNKNOWN_VERSION, /* not a version of this family: nothing was touched */
};

/* The family of a GPU with this compute capability; NULL where it is older or newer than what we know. */
const struct qmd_family *qmd_family_for(unsigned int compute_major, unsigned int compute_minor);

/* How many bits of a disable mask every version of the family holds. */
unsigned int qmd_mask_bits(const struct qmd_family *family);

/* Disables in `qmd` what `disable` says, on top of what the driver disabled there (FACTS 3, last point):
 * a green context or a cluster launch comes with a mask of its own. Bits of absent TPCs must be set in
 * `disable`. Never leaves a descriptor with nothing enabled: such a kernel would hang (FACTS 6).
 * `qmd` is 4-byte aligned. */
enum qmd_outcome qmd_disable(const struct qmd_family *family, void *qmd, const struct qmd_mask *disable);

#endif
